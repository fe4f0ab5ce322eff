"""Real hosts whose models write programs: a program ends the same, directly and through the proxy."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from packages import Unavailable

from benchmarks.code_mode.run import LANGUAGES, run, start_line
from benchmarks.code_mode.scripts import SCRIPTS

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]
ONE_OF_EACH_KIND = [script for script in SCRIPTS if script.number == 1]


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize(
    ("host", "programs"), [("fastmcp", "whole"), ("pydantic", "whole"), ("cloudflare", "whole"), ("codex", "auto")]
)
def test_programs_end_the_same_through_the_proxy(host: str, programs: str) -> None:
    try:
        start_line(host)
    except Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{host} cannot be had: {reason}")
    direct = run(host, "direct", ONE_OF_EACH_KIND)
    assert {name: each.get("error") for name, each in direct.items()} == dict.fromkeys(direct)
    assert run(host, programs, ONE_OF_EACH_KIND) == direct


def test_the_suite_has_fifty_programs_and_four_hosts() -> None:
    assert Counter(script.kind for script in SCRIPTS) == dict.fromkeys(("filter", "join", "count", "pages", "follow"), 10)
    assert set(LANGUAGES) == {"fastmcp", "pydantic", "cloudflare", "codex"}
