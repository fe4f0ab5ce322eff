"""The model searches for tools with `tool_search=True`, with the same drivers as `suite.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from overspill import Session, Settings
from tests.integrations.driving import Call, Driver, Scripted
from tests.integrations.suite import read_log

OFFERED = {"find_tools", "describe_tools", "call_tool", "get_tool_output"}


def make_many(count: int) -> list[Callable[..., Any]]:
    def make(number: int) -> Callable[..., Any]:
        def run(text: str) -> str:
            return f"{number}: {text}"

        run.__name__, run.__doc__ = f"send_{number}", f"Send a text to room {number}."
        return run

    return [make(number) for number in range(count)]


def delete(name: str) -> str:
    """Delete a room."""
    return f"deleted {name}"


def spy() -> Scripted:
    """Two runs, of which only the first may have the tool `delete`."""
    steps = [Call("find_tools", {"query": "delete a room"}, "c1"), call("delete", {"name": "7"}, "c2")]
    return Scripted(*([*steps, Call("describe_tools", {"names": ["delete"]}, "c3")], "done") * 2)


def check_secret(script: Scripted) -> None:
    admin, guest = script.requests[1].results, script.requests[3].results
    assert "delete(name: str)" in admin["c1"]
    assert admin["c2"] == "deleted 7"
    assert '"name":"delete"' in admin["c3"]
    assert "send_" in guest["c1"]
    assert "delete(" not in guest["c1"]
    assert "no tool 'delete'" in guest["c2"]
    assert "no tool 'delete'" in guest["c3"]


def search(place: Path) -> Settings:
    return Settings(storeDir=str(place), toolSearch="on", truncation={"overrides": {"read_log": {"toolSearch": "off"}}})


def call(name: str, arguments: object, id: str) -> Call:
    return Call("call_tool", {"name": name, "arguments": arguments}, id)


async def test_the_model_searches_for_tools_and_calls_them_by_their_own_names(driver: Driver, tmp_path: Path):
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [call("send_7", {"text": "hello"}, "c2"), Call("read_log", {}, "c3")],
        [call("no", {}, "c4"), call("read_log", {}, "c5"), Call("find_tools", {"query": " "}, "c6")],
        "done",
    )
    agent = driver.agent([*make_many(30), read_log], script, settings=search(tmp_path), tool_search=True)
    assert await agent.run("Say hello in room 7") == "done"
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {frozenset(OFFERED | {"read_log"})}
    results = script.last.results
    assert "send_7(text: str)" in results["c1"]
    assert results["c2"] == "7: hello"
    assert "stored as out_" in results["c3"]
    assert "There is no tool 'no', or not any more." in results["c4"]
    assert "read_log is called directly" in results["c5"]
    assert "Say in `query` what you want to do" in results["c6"]


async def test_a_call_that_does_not_fit_teaches_the_schema(driver: Driver, tmp_path: Path):
    script = Scripted([call("send_7", {"words": 1}, "c1")], [call("send_7", {"text": "hello"}, "c2")], "done")
    agent = driver.agent(make_many(8), script, settings=search(tmp_path), tool_search=True)
    assert await agent.run("Say hello in room 7") == "done"
    answer = script.last.results["c1"].replace("\\", "")
    assert "The arguments do not fit the tool: " in answer
    assert '"name":"send_7"' in answer
    assert script.last.results["c2"] == "7: hello"


async def test_short_lists_of_tools_are_offered_as_they_are(driver: Driver, tmp_path: Path):
    script = Scripted([Call("send_1", {"text": "a"})], lambda request: request.results["c1"])
    agent = driver.agent(make_many(2), script, settings=Settings(storeDir=str(tmp_path)), tool_search=True)
    assert await agent.run("Go") == "1: a"
    assert not {"find_tools", "call_tool"} & {*script.requests[0].tools}


async def test_tools_of_the_names_of_the_search_are_found_beside_a_prefix(driver: Driver, tmp_path: Path):
    def find_tools(shop: str) -> str:
        """Find hammers in a shop."""
        return f"a hammer at {shop}"

    def call_tool(number: str) -> str:
        """Phone a number."""
        return f"phoned {number}"

    script = Scripted(
        [Call("our_find_tools", {"query": "hammer"}, "c1")],
        [Call("our_call_tool", {"name": "find_tools", "arguments": {"shop": "Bolt's"}}, "c2")],
        [Call("our_call_tool", {"name": "call_tool", "arguments": {"number": "7"}}, "c3")],
        "done",
    )
    async with Session(search(tmp_path), tool_prefix="our_") as session:
        agent = driver.agent([find_tools, call_tool], script, session=session, tool_search=True)
        assert await agent.run("Buy a hammer.") == "done"
    results = script.last.results
    assert "find_tools(shop: str)" in results["c1"]
    assert "our_call_tool(name, arguments)" in results["c1"]
    assert results["c2"] == "a hammer at Bolt's"
    assert results["c3"] == "phoned 7"
