"""The model says what it is looking for, where the setting `intent` is `ask`, with the same drivers as `suite.py`."""

from __future__ import annotations

import json
from pathlib import Path

from overspill import Settings
from tests.integrations.driving import Call, Driver, Request, Scripted
from tests.integrations.suite import LINES, find_name, read_log


def ask(place: Path) -> Settings:
    return Settings(storeDir=str(place), intent="ask", intentWithinSecs=30)


async def test_the_model_may_say_what_it_is_looking_for(driver: Driver, tmp_path: Path):
    script = Scripted([Call("read_log", {"looking_for": "request 004711"})], lambda request: request.results["c1"])
    answer = await driver.agent([read_log], script, settings=ask(tmp_path)).run("Read it.")
    assert LINES[4_711] in answer
    assert len(answer) < 10_000
    offered = [json.dumps(request.tools, default=str) for request in script.requests]
    assert "What you need from the result" in json.dumps(script.requests[0].tools["read_log"], default=str)
    assert "What you need from the result" not in json.dumps(script.requests[0].tools["get_tool_output"], default=str)
    assert offered == [offered[0]] * 2


async def test_the_model_need_not_say_what_it_is_looking_for(driver: Driver, tmp_path: Path):
    script = Scripted([Call("read_log")], lambda request: find_name(request.results["c1"]))
    assert (await driver.agent([read_log], script, settings=ask(tmp_path)).run("Read it.")).startswith("out_")


async def test_an_argument_of_the_tool_that_has_this_name_is_its_own(driver: Driver, tmp_path: Path):
    def search(looking_for: str) -> str:
        """Search."""
        return f"searched for {looking_for}"

    def finish(request: Request) -> str:
        return request.results["c1"]

    script = Scripted([Call("search", {"looking_for": "a cat"})], finish)
    assert await driver.agent([search], script, settings=ask(tmp_path)).run("Search.") == "searched for a cat"
