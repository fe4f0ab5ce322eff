"""If nothing stored seems to answer a question, the reply says so before it shows what comes nearest."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from overspill.extraction import NOT_FOUND
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
from overspill.wording import retrieval as wording

NOTES = "".join(
    f"Order {number} went to {'Ulm' if number % 50 else 'the port of Hamburg'} with {number % 7} crates of oranges.\n"
    for number in range(400)
)
ABSENT = "Which lawyer signed the insurance contract for the port's crane accident?"
PRESENT = "Order 217 with oranges"


async def ask(preset: Literal["overspill", "tool_output", "slow"], tool: str, **args: str) -> str:
    async with Session(Settings(preset=preset), store=MemoryStore()) as session:
        kept = await session.keep(NOTES, "notes")
        key = "id" if tool == "get_tool_output" else "handle"
        reply = await session.invoke(tool, {key: kept.handle, **args})
        assert not reply.is_error
        return reply.text


@pytest.mark.parametrize(("preset", "words"), [("overspill", wording.NEAREST), ("tool_output", NOT_FOUND)])
async def test_an_abstract_says_first_that_nothing_fits(preset: Literal["overspill", "tool_output"], words: str) -> None:
    shown = await ask(preset, "tool_output", extract=ABSENT)
    assert shown.count(words) == 1
    assert shown.index(words) < shown.index("port of Hamburg")
    assert words not in await ask(preset, "tool_output", extract=PRESENT)


async def test_snippets_come_with_the_reason_that_nothing_fits() -> None:
    found = json.loads(await ask("slow", "get_tool_output", mode="extract", query=ABSENT))
    assert found["snippets"]
    assert found["no_match_reason"] == NOT_FOUND
    assert "no_match_reason" not in json.loads(await ask("slow", "get_tool_output", mode="extract", query=PRESENT))
