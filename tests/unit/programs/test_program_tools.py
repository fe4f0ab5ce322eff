"""Tools inside programs: only those that the user listed, of one server, within limits, and whole results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest
from extras import needs

from overspill import Session, Settings
from overspill.programs.tools import MAX_CALLS, ProgramTool, define_tools, select_allowed
from overspill.types import Output

pytestmark = needs("pydantic_monty", "programs")


def tool(name: str, server: str = "", run: Callable[..., Any] = lambda: "", parameters: Any = None, **facts: Any) -> ProgramTool:
    return ProgramTool(name, facts.pop("description", ""), parameters, run, server, **facts)


def block(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def offering(session: Session, *tools: ProgramTool) -> None:
    async def list_tools() -> Iterable[ProgramTool]:
        return tools

    session.offer_to_programs(list_tools)


async def run(session: Session, code: str) -> str:
    return (await session.run_program(code)).text


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, []),
        ({"programTools": ["crm/get_*"]}, ["crm.get_customer"]),
        ({"programTools": ["crm"]}, ["crm.get_customer", "crm.delete"]),
        ({"programTools": ["crm/*", "mine"]}, ["crm.get_customer", "crm.delete", "mine"]),
        ({"programTools": ["other/*"]}, []),
        ({"trustReadOnly": ["crm"]}, ["crm.get_customer"]),
        ({"trustReadOnly": ["my-db"]}, ["my_db.query_1"]),
        ({"programTools": ["*"]}, ["mine"]),
        ({"programTools": ["*/*"]}, ["crm.get_customer", "crm.delete", "my_db.query_1"]),
    ],
)
def test_only_what_the_user_lists_or_trusts_is_allowed(settings: dict[str, Any], allowed: list[str]):
    tools = [
        tool("crm__get_customer", "crm", is_read_only=True),
        tool("delete", "crm"),
        tool("query-1", "my-db", is_read_only=True),
        tool("mine"),
    ]
    found = select_allowed(tools, Settings(**settings))
    assert [name for name in found if name in allowed] == allowed
    if settings.get("programTools") != ["*"]:
        assert list(found) == allowed


def test_hostile_names_of_tools_become_identifiers():
    names = ["a.b\nimport os", "class", "load", "", "9x", "ü\u202e", "x'); evil('", "json"]
    found = select_allowed([tool(name, "s\n1") for name in names], Settings(programTools=["*/*"]))
    assert all(part.isidentifier() for name in found for part in name.split("."))
    compile(define_tools(found), "definitions", "exec")


async def test_no_tool_can_be_called_until_the_user_lists_it():
    async with Session() as session:
        session.tool(secret := lambda: "secret")
        offering(session, tool("get", "crm", lambda: "secret"))
        for code in ("await crm.get()", "await get()", "await _call('crm.get', '{}')", "await _use('get', (), {})"):
            reply = await session.run_program(code)
            assert reply.is_error
            assert "secret" not in reply.text
        assert "programTools" in await run(session, "tool_stubs()")
        assert secret() == "secret"


@pytest.mark.both_loops
async def test_tools_run_together_in_gather_and_give_json():
    running, most, are_together = 0, 0, anyio.Event()

    async def get(id: int) -> dict[str, int]:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        if most > 1:
            are_together.set()
        with anyio.move_on_after(30):
            await are_together.wait()
        running -= 1
        return {"id": id}

    async with Session(Settings(programTools=["crm"])) as session:
        offering(session, tool("get", "crm", get))
        code = "import asyncio\nfound = await asyncio.gather(*[crm.get(id=n) for n in range(5)])\n[each['id'] for each in found]"
        assert await run(session, code) == "[0, 1, 2, 3, 4]"
        assert most > 1


async def test_a_missing_await_gets_an_error_that_says_so():
    async with Session(Settings(programTools=["get"])) as session:
        calls: list[int] = []
        offering(session, tool("get", run=lambda: calls.append(1) or {"a": 1}))
        forgotten = ("get()", "get()\nprint(1)", "import asyncio\nasyncio.gather(get(), get())")
        for code in ("get()['a']", "len(get())", "for x in get(): pass", "get() + 1", *forgotten):
            assert "must be awaited: `result = await" in await run(session, code)
        assert calls == []
        assert "by name" in await run(session, "await get(1)")


async def test_large_results_are_whole_in_a_program_and_stored_like_any_other():
    rows = [{"id": n, "text": "x" * 50} for n in range(1000)]
    async with Session(Settings(programTools=["*/*", "*"])) as session:
        offering(
            session, tool("rows", "crm", lambda: rows), tool("fail", "crm", lambda: Output([block("no such row")], is_error=True))
        )
        assert await run(session, "found = await crm.rows()\nlen(found), found[-1]['id']") == "(1000, 999)"
        (kept,) = [each for each in session.kept() if each.tool == "rows"]
        assert (kept.server, kept.reason) == ("crm", "size_cap")
        assert lineage_calls(session) == [("rows", "crm", kept.handle)]
        text = await run(session, "try:\n    await crm.fail()\nexcept RuntimeError as error:\n    print('caught:', error)")
        assert text == "caught: crm.fail failed: no such row"


def lineage_calls(session: Session) -> list[tuple[str, str, str]]:
    made = session.kept()[-1].lineage
    assert made is not None
    return [(call.tool, call.server, call.handle) for call in made.calls]


async def test_structured_content_comes_before_text():
    result: dict[str, Any] = {"content": [], "structuredContent": {"result": [1, 2]}}
    async with Session(Settings(programTools=["crm"])) as session:
        output = Output([block("1 and 2")], original=result)
        offering(session, tool("get", "crm", lambda: output))
        assert await run(session, "await crm.get()") == "[1, 2]"


async def test_a_program_makes_at_most_so_many_calls():
    async with Session(Settings(programTools=["get"], asyncTimeoutSecs=60)) as session:
        count: list[int] = []
        offering(session, tool("get", run=lambda: count.append(1)))
        text = await run(session, "for n in range(1000): await get()")
        assert f"{MAX_CALLS} times" in text
        assert len(count) == MAX_CALLS


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("await _call('get', '{')", "must be a JSON object"),
        ("await _call('get', '[' * 100_000)", "must be a JSON object"),
        ("tool_stubs([1])", "may not call 1"),
    ],
)
async def test_what_goes_around_our_functions_fails_inside_the_program(code: str, said: str):
    async with Session(Settings(programTools=["get"])) as session:
        offering(session, tool("get"))
        caught = f"try:\n    print({code})\nexcept Exception as error:\n    print(error)"
        assert said in await run(session, caught)


async def test_a_slow_tool_ends_with_its_program():
    async with Session(Settings(programTools=["wait"], programTimeoutSecs=1)) as session:
        offering(session, tool("wait", run=anyio.sleep_forever))
        with anyio.fail_after(20):
            text = await run(session, "print('before')\nawait wait()")
        assert text.startswith("The program was stopped at its time limit of 1 s.")
        assert "before" in text
        assert await run(session, "1 + 1") == "2"


class TestOneServer:
    async def test_what_was_read_of_one_server_does_not_reach_another(self):
        sent: list[str] = []

        def send(text: str) -> None:
            sent.append(text)

        async with Session(Settings(programTools=["*/*"])) as session:
            offering(session, tool("get", "crm", lambda: '"private"'), tool("send", "mail", send))
            text = await run(session, "await mail.send(text=await crm.get())")
            assert "refs.allow" in text
            kept = await session.call("dump", {}, lambda: "p" * 20_000, server="crm")
            assert kept.kept is not None
            text = await run(session, f"x = load('{kept.kept.name}')\nawait mail.send(text=x[0])")
            assert "refs.allow" in text
            await run(session, f"save('copy', load('{kept.kept.name}')[0][:100])")
            copy = next(each for each in session.kept() if each.source == "run_program: copy")
            assert copy.server == "crm"
            assert "refs.allow" in await run(session, f"x = load('{copy.name}')\nawait mail.send(text=x[0])")
            assert sent == []
            assert await run(session, "await mail.send(text='hello')\nprint('sent')") == "sent"
            assert sent == ["hello"]

    async def test_outputs_of_two_servers_are_read_together_only_if_the_user_permits_it(self):
        rows = json.dumps([{"id": n} for n in range(3000)])
        for allow, is_permitted in (([], False), ([{"from": "crm", "to": "mail"}], True)):
            async with Session(Settings(refs={"allow": allow}, programTools=["mail/*"])) as session:
                names: list[str] = []
                for server in ("crm", "mail"):
                    reply = await session.call("rows", {}, lambda: rows, server=server)
                    assert reply.kept is not None
                    names.append(reply.kept.name)
                reply = await session.run_program(f"len(load('{names[0]}')) + len(load('{names[1]}'))")
                assert (reply.text == "6000") is is_permitted
                if is_permitted:
                    assert session.kept()[-1].server == "crm+mail"

    async def test_a_permission_has_a_direction(self):
        settings = Settings(programTools=["*/*"], refs={"allow": [{"from": "crm/*", "to": "mail/send"}]})
        async with Session(settings) as session:

            def count(**args: object) -> str:
                return str(len(args) + 1)

            offering(session, tool("get", "crm", count), tool("send", "mail", count))
            assert await run(session, "await mail.send(x=await crm.get())") == "2"
            assert "refs.allow" in await run(session, "await crm.get(x=await mail.send())")


async def test_stubs_are_typed_signatures():
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "limit": {"default": 10}}}
    async with Session(Settings(programTools=["*/*"])) as session:
        offering(session, tool("get", "crm", parameters=schema, description="Gets a customer.\nMore."), tool("all", "crm"))
        first = "async def crm.get(*, id: int, limit: Any = 10) -> Any: ...  # Gets a customer."
        assert await run(session, "tool_stubs(['crm.get'])") == first
        assert (await run(session, "tool_stubs()")).splitlines()[0] == first
        assert "A program may not call crm.nope." in await run(session, "tool_stubs('crm.nope')")
