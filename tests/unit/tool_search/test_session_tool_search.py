"""A session whose model searches for the tools of the host program."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from overspill import Session, Settings, SyncSession, ToolCall
from overspill.errors import BadRequest
from overspill.integrations.functions import wrap_tools
from overspill.text import tokens
from overspill.text.lenient_json import dumps

OURS = ["find_tools", "describe_tools", "call_tool"]
READING = ["get_tool_output"]
ON = Settings(toolSearch="on")


async def create_issue(repo: str, title: str, labels: list[str] | None = None) -> str:
    """Open a new issue in a repository."""
    return f"{repo}: {title}"


def close_issue(repo: str, number: int, reason: Literal["done", "wrong"] = "done") -> str:
    """Close an issue.

    It can be opened again.
    """
    return f"{repo}#{number + 1} {reason}"


def names(session: Session | SyncSession) -> list[str]:
    return [tool["name"] for tool in session.tools() if tool["name"] != "run_program"]


async def call(session: Session, tool: str, execute: Any = None, /, **args: Any) -> str:
    (reply,) = await session.turn([ToolCall("1", tool, args)], execute)
    return reply.text


def definition(name: str, **more: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {"name": name, "description": f"Does {name}.", "parameters": parameters, **more}


@pytest.mark.both_loops
async def test_functions_are_found_described_and_called() -> None:
    async with Session(ON) as session:
        assert session.tool_search([create_issue, close_issue]) == []
        assert names(session) == [*OURS, *READING]
        found = await call(session, "find_tools", query="shut an issue")
        assert "close_issue(repo: str, number: int, reason: Literal['done', 'wrong'] = ...)  # Close an issue." in found
        assert '"labels":{"type":"array"' in await call(session, "describe_tools", names=["create_issue"])
        assert await call(session, "call_tool", name="create_issue", arguments={"repo": "a", "title": "b"}) == "a: b"
        assert (await session.invoke("call_tool", {"name": "close_issue", "arguments": '{"repo": "a", "number": 1}'})).text == (
            "a#2 done"
        )
        assert [entry["command"] for entry in session.accounting()] == [*OURS[:2], "create_issue", "close_issue"]


@pytest.mark.parametrize("format", ["jsonschema", "openai", "openai-responses", "anthropic", "gemini", "mcp"])
async def test_definitions_of_every_format_are_searched_and_run_by_the_host(format: Any) -> None:
    async with Session() as one:
        given = [tool for tool in one.tools(format) if "run_program" not in str(tool)]
    ran: list[ToolCall] = []
    async with Session(ON, tool_prefix="our_") as session:
        assert session.tool_search(given) == []
        assert "get_tool_output(id: str, mode: Literal[" in await call(
            session, "our_find_tools", query="extract from stored output"
        )
        said = await call(session, "our_call_tool", ran.append, name="get_tool_output", arguments={"id": "h", "mode": "raw"})
        assert [(each.name, each.args) for each in ran] == [("get_tool_output", {"id": "h", "mode": "raw"})], said


async def test_what_is_offered_takes_at_most_700_tokens() -> None:
    async with Session(ON) as session:
        session.tool_search([create_issue])
        offered = [tool for tool in session.tools("openai") if tool["function"]["name"] != "run_program"]
        assert tokens.count(dumps(offered).decode(), "gpt-4o").tokens < 700


async def test_auto_searches_only_long_lists_and_rules_leave_tools_outside() -> None:
    many = [definition(f"tool_{n}", description="words " * 200) for n in range(60)]
    async with Session() as session:
        assert session.tool_search(many[:3]) == many[:3]
        assert names(session) == READING
        assert not session.owns("call_tool")
    async with Session() as session:
        assert session.tool_search(many) == []
    pinned = Settings(toolSearch="on", directTools="destructive", truncation={"overrides": {"tool_1": {"toolSearch": "off"}}})
    async with Session(pinned) as session:
        dangerous = definition("tool_2", annotations={"destructiveHint": True})
        assert session.tool_search([many[0], many[1], dangerous]) == [many[1], dangerous]
        assert "called directly" in await call(session, "call_tool", name="tool_2", arguments={})


async def test_a_call_that_does_not_fit_teaches_the_schema_and_an_unknown_tool_is_named() -> None:
    async with Session(ON) as session:
        session.tool_search([create_issue, close_issue])
        said = await call(session, "call_tool", name="close_issue", arguments={"repo": "a", "number": "one"})
        assert "The arguments do not fit the tool" in said
        assert '"enum":["done","wrong"]' in said
        assert "no tool 'close_isue'" in await call(session, "call_tool", name="close_isue", arguments={})
        assert "`name` must be" in (await session.invoke("call_tool", "nonsense")).text  # pyright: ignore[reportArgumentType]
        assert "what you want to do" in await call(session, "find_tools", query=" ")


async def test_the_list_is_decided_once_and_no_name_is_there_twice() -> None:
    async with Session(ON) as session:
        session.tools()
        with pytest.raises(BadRequest, match="do not change"):
            session.tool_search([create_issue])
    for taken in ("call_tool", "get_tool_output"):
        with pytest.raises(BadRequest, match=f"Two tools have the name {taken}"):
            Session(ON).tool_search([definition(taken)])
    with pytest.raises(BadRequest, match="a definition with a name"):
        Session(ON).tool_search([{"title": "x"}])


async def test_wrapped_functions_are_searched_for() -> None:
    async with Session(ON) as session:
        offered = {each.__name__: each for each in wrap_tools([create_issue, close_issue], session, tool_search=True)}
        assert [name for name in offered if name != "run_program"] == [*OURS, *READING]
        assert "close_issue(" in await offered["find_tools"](query="close issue")
        assert await offered["call_tool"](name="close_issue", arguments={"repo": "a", "number": 3}) == "a#4 done"


def test_wrapped_functions_are_searched_for_without_an_event_loop() -> None:
    with SyncSession(ON) as session:
        offered = {each.__name__: each for each in wrap_tools([create_issue, close_issue], session, tool_search=True)}
        assert offered["call_tool"](name="create_issue", arguments={"repo": "a", "title": "t"}) == "a: t"


@pytest.mark.parametrize("levels", [400, 490, 600, 5_000])
async def test_a_schema_that_is_nested_too_deeply_hides_no_other_tool(levels: int) -> None:
    deep: dict[str, Any] = {}
    for _ in range(levels):
        deep = {"type": "object", "properties": {"inner": deep}}
    async with Session() as session:
        session.tool_search(
            [definition("deep", parameters=deep), *(definition(f"tool_{n}", description="x " * 9_000) for n in range(3))]
        )
        assert names(session) == [*OURS, *READING]
        assert "deep(" in await call(session, "find_tools", query="deep")
        assert '"name":"deep"' in await call(session, "describe_tools", names=["deep"])
        assert "The arguments do not fit the tool: missing path." in await call(
            session, "call_tool", boom, name="tool_1", arguments={}
        )


def boom(call: ToolCall) -> str:
    raise ValueError(call.name)
