"""What only the Claude Agent SDK has: built-in tools, servers outside the process, sessions that are resumed, your hooks."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, create_sdk_mcp_server, query

from overspill import Session, Settings
from overspill.errors import BadRequest
from overspill.integrations.claude_agent_sdk import overspill_options
from overspill.integrations.options import Options
from tests.conformance.model_apis import serving
from tests.integrations.drivers.claude_agent_sdk import DRIVER, ScriptedApi, make_environment, make_tool
from tests.integrations.driving import Call, Driver, Request, Scripted
from tests.integrations.suite import LOG, NEEDLE, extract, find_name, read_log, settings
from tests.waiting import until

__all__ = ["settings"]

SERVER = """
from pathlib import Path
from mcp.server.mcpserver import MCPServer
server = MCPServer("outside")
@server.tool()
def read_log() -> str:
    return Path("log.txt").read_text()
server.run("stdio")
"""


async def ask(script: Scripted, home: Path, options: dict[str, Any], **more: Any) -> ResultMessage:
    api = ScriptedApi(script, asyncio.get_running_loop())
    with serving(api):
        env = make_environment(api.url, str(home))
        given = ClaudeAgentOptions(**options, env=env, cwd=home, setting_sources=[], **more)
        said = [each async for each in query(prompt="Which order was refused?", options=given)]
    found = [each for each in said if isinstance(each, ResultMessage)]
    assert not found[-1].is_error, found[-1].result
    return found[-1]


async def test_the_result_of_a_built_in_tool_is_replaced(tmp_path: Path, settings: Settings):
    (tmp_path / "log.txt").write_text("\n".join([*LOG.splitlines()[6_500:7_100]]))
    script = Scripted(
        [Call("Bash", {"command": "cat log.txt"})],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    answer = await ask(script, tmp_path, overspill_options(settings=settings, allowed_tools=["Bash"]), tools=["Bash"])
    assert NEEDLE in str(answer.result)
    assert "stored as out_" in script.requests[1].results["c1"]


@pytest.mark.parametrize("lines", [600, 12_000])
async def test_the_result_of_a_server_outside_the_process_is_replaced(tmp_path: Path, settings: Settings, lines: int):
    whole = LOG.splitlines()[7_001 - lines // 2 : 7_001 + lines // 2]
    (tmp_path / "log.txt").write_text("\n".join(whole))
    script = Scripted([Call("read_log")], "done")
    servers = {"outside": {"type": "stdio", "command": sys.executable, "args": ["-c", SERVER]}}
    options = overspill_options(settings=settings, mcp_servers=servers, allowed_tools=["mcp__outside"])
    answer = await ask(script, tmp_path, options, tools=[])
    shown = script.last.results["c1"]
    assert len(shown) < 10_000
    async with Session(settings, name=Options("claude_agent_sdk", settings).find_key(answer.session_id)) as session:
        with session.open(find_name(shown)) as stored:
            assert json.loads(stored.bytes()) == {"result": "\n".join(whole)}  # as Claude Code shows structured results


async def test_a_query_that_resumes_a_session_reads_what_it_stored(tmp_path: Path, settings: Settings):
    (tmp_path / "log.txt").write_text("\n".join(LOG.splitlines()[6_500:7_100]))
    options = overspill_options(settings=settings, allowed_tools=["Bash"])
    script = Scripted([Call("Bash", {"command": "cat log.txt"})], lambda request: find_name(request.results["c1"]))
    first = await ask(script, tmp_path, options, tools=["Bash"])
    grep = {"id": str(first.result), "mode": "grep", "pattern": "refused"}
    script = Scripted([Call("get_tool_output", grep, "c2")], lambda request: request.results["c2"])
    again = await ask(script, tmp_path, options, tools=["Bash"], resume=first.session_id)
    assert NEEDLE in str(again.result)


async def test_your_own_hooks_and_servers_stay(tmp_path: Path, settings: Settings):
    seen: list[str] = []

    async def watch(event: Any, id: str | None, context: Any) -> dict[str, Any]:
        seen.append(event["tool_name"])
        return {}

    options = overspill_options(settings=settings, allowed_tools=["Bash"], hooks={"PostToolUse": [HookMatcher(hooks=[watch])]})
    await ask(Scripted([Call("Bash", {"command": "echo hello"})], "done"), tmp_path, options, tools=["Bash"])
    assert seen == ["Bash"]


def test_a_server_that_takes_our_name_or_a_path_is_refused():
    with pytest.raises(BadRequest, match="Give your server another name"):
        overspill_options(mcp_servers={"overspill": {"command": "x"}})
    with pytest.raises(BadRequest, match="mcp_servers must be a dictionary"):
        overspill_options(mcp_servers="servers.json")  # pyright: ignore[reportArgumentType]


async def test_calls_of_two_users_with_the_same_id_are_nobodys(settings: Settings):
    """Neither may end up in the other's session, whatever ids a provider gives."""
    options = overspill_options(settings=settings)
    (note,) = options["hooks"]["PreToolUse"][0].hooks
    adapter = note.__self__
    for user in ("ann", "bob"):
        await note({"tool_use_id": "call_1", "session_id": user}, "call_1", {})
    assert adapter._calls["call_1"] == ""
    adapter._forget("call_1")  # one has ended, the other may still run
    await note({"tool_use_id": "call_1", "session_id": "eve"}, "call_1", {})
    assert adapter._calls["call_1"] == ""


async def test_a_server_may_have_any_name(tmp_path: Path, settings: Settings):
    """Claude Code changes it in the names of tools."""
    servers = {"my tools.v2": create_sdk_mcp_server("my tools.v2", tools=[make_tool(read_log)])}
    script = Scripted(
        [Call("read_log")],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    options = overspill_options(settings=settings, mcp_servers=servers, allowed_tools=["mcp__my_tools_v2"])
    answer = await ask(script, tmp_path, options, tools=[])
    assert NEEDLE in str(answer.result)


def test_claude_code_asks_one_hook_about_a_call():
    """Each costs a message in both directions."""
    servers = {name: create_sdk_mcp_server(name, tools=[]) for name in ("tools", "my tools.v2")}
    hooks = overspill_options(mcp_servers={**servers, "outside": {"command": "x"}})["hooks"]
    ours = ("mcp__tools__add", "mcp__my_tools_v2__add", "mcp__overspill__get_tool_output")
    others = ("Bash", "mcp__outside__add", "mcp__tools2__add", "my_mcp__tools__add")
    for name in (*ours, *others):
        asked = [event for event in ("PreToolUse", "PostToolUse") if re.search(hooks[event][0].matcher, name)]
        assert asked == ["PreToolUse" if name in ours else "PostToolUse"]


async def test_a_result_of_a_hundred_times_the_size_is_answered_as_well(driver: Driver, settings: Settings):
    """50 MB, from a server in this process."""

    def export() -> str:
        """Export everything."""
        return "\n".join([LOG.replace(NEEDLE, "nothing")] * 50 + [NEEDLE] + [LOG.replace(NEEDLE, "nothing")] * 50)

    def grep(request: Request) -> list[Call]:
        id = find_name(request.results["c1"])
        return [Call("get_tool_output", {"id": id, "mode": "grep", "pattern": "refused"}, "c2")]

    script = Scripted([Call("export")], grep, lambda request: request.results["c2"])
    assert NEEDLE in await driver.agent([export], script, settings=settings).run("go on")
    assert len(script.requests[1].results["c1"]) < 10_000


async def test_a_conversation_whose_process_was_killed_goes_on(driver: Driver, settings: Settings, tmp_path: Path):
    """What it had stored can be read, and Claude Code does not outlive the program that started it."""
    code = "import sys; from tests.integrations.own.claude_agent_sdk import hang; hang(*sys.argv[1:])"
    async with await anyio.open_process([sys.executable, "-c", code, str(tmp_path)], stderr=None) as running:
        assert running.stdout is not None
        with anyio.fail_after(120):
            said = json.loads(await running.stdout.receive())
        running.kill()
        await running.wait()
    await until(lambda: not any(map(is_running, said["children"])), within=60)
    grep = {"id": said["name"], "mode": "grep", "pattern": "refused"}
    script = Scripted([Call("get_tool_output", grep, "c3")], lambda request: request.results["c3"])
    assert NEEDLE in await driver.agent([read_log], script, settings=settings).run("go on", conversation="killed")


def hang(store: str) -> None:
    """Stores an output, says how to find it, and then waits to be killed."""
    name = ""

    def call_wait(request: Request) -> list[Call]:
        nonlocal name
        name = find_name(request.results["c1"])
        return [Call("wait", {}, "c2")]

    async def wait() -> str:
        """Wait."""
        listed = Path(f"/proc/self/task/{os.getpid()}/children")  # not on every system
        children = listed.read_text().split() if listed.exists() else []
        print(json.dumps({"name": name, "children": [int(each) for each in children]}), flush=True)
        await asyncio.Event().wait()
        return ""

    agent = DRIVER.agent([read_log, wait], Scripted([Call("read_log")], call_wait), settings=Settings(storeDir=store))
    asyncio.run(agent.run("Read it.", conversation="killed"))


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"
