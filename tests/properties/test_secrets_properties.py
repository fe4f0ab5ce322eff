"""A known value, anywhere in an output, in any listed encoding, is in no answer, however it is read."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given, settings

from benchmarks.redaction.hidden import SHAPES, Case, cases, find_shown

FOUND_ONCE = [
    Case("ab<cd>ef" * 9, "base64 in lines", "JSON in a string", 4_096, 3_000, 0, False),
    Case('\x7f1 ="\x7f+.+0', "JSON in JSON", "table", 5_000, 0, 4, False),
    Case('"\\"\n"\\" x', "JSON three times", "JSON in a string", 600, 30, 0, False),
    Case("array-string", "JSON in JSON", "JSON", 4_052, 1, 13, False),
    Case("\U00044eef3abn-mql;S", "HTML", "JSON in a string", 6, 1, 10, False),
    Case("aaaaaaaaab1", "plain", "stream", 600, 30, 10, False),
]


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=settings.default.max_examples * 2 // 5)  # each reads an output in every way
@given(case=cases)
def test_no_answer_shows_a_known_value(shape: str, case: Case) -> None:
    assert anyio.run(find_shown, case._replace(shape=shape)) == []


@pytest.mark.anyio
@pytest.mark.parametrize("case", FOUND_ONCE, ids=lambda case: case.encoding)
async def test_what_was_shown_once_is_hidden(case: Case) -> None:
    assert await find_shown(case) == []


@pytest.mark.anyio
async def test_the_check_sees_a_value_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.redaction.hidden.PLACE", "off")
    shown = await find_shown(Case("xk-7731-hidden", "plain", "log", 600, 30, 0, False))
    assert {"reply", "bytes", "text"} <= {way for way, _ in shown}
