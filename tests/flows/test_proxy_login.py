"""A server behind the proxy wants a login, before or during a conversation. The call works after it, without a restart."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp
import mcp_types
import pytest
from commands import bare_environment
from login_servers import Door, door, page
from mcp.client.stdio import StdioServerParameters, stdio_client
from test_login_hostile import Person
from waiting import list_paths, until

from overspill.mcp.client.login.flow import log_in
from overspill.mcp.client.login.storage import LoginStore

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TOKEN = "token-that-nobody-may-see"  # noqa: S105


@pytest.fixture
def notes() -> Iterator[Door]:
    with door({TOKEN: {"notes:read"}, "other": {"notes:read", "notes:write"}}.get) as opened:
        opened.be_issuer()
        opened.pages["/token"] = page({"access_token": TOKEN, "token_type": "Bearer", "scope": "notes:read"})
        yield opened


class Conversation:
    """The official client and a proxy of its own."""

    def __init__(self, home: Path, notes: Door, *, agrees: bool | None = None) -> None:
        self.links: list[str] = []
        self.changed = anyio.Event()
        self.log = home / "log"
        words = ["-c", "from overspill.cli import main; main()", "proxy", "--url", notes.url, "--name", "notes"]
        environ = bare_environment(home)
        self._server = StdioServerParameters(command=sys.executable, args=words, env=environ)
        self.environ, self._agrees = environ, agrees

    async def _elicit(self, _: Any, params: Any) -> mcp_types.ElicitResult:
        self.links.append(params.url)
        if self._agrees:
            await Person().show(params.url)
        return mcp_types.ElicitResult(action="accept" if self._agrees else "decline")

    async def _hear(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self.changed.set()

    def client(self, stderr: Any) -> mcp.Client:
        elicit: Any = {} if self._agrees is None else {"elicitation_callback": self._elicit}
        transport = stdio_client(self._server, errlog=stderr)
        return mcp.Client(transport, mode="legacy", message_handler=self._hear, **elicit)


async def call(client: mcp.Client, tool: str) -> str:
    result = await client.call_tool(tool, {})
    return str(getattr(result.content[0], "text", ""))


async def test_the_link_is_shown_where_the_client_can_and_tools_appear_after_the_login(tmp_path: Path, notes: Door):
    talk = Conversation(tmp_path, notes, agrees=True)
    with anyio.fail_after(60), talk.log.open("w") as stderr:
        async with talk.client(stderr) as client:
            await talk.changed.wait()
            assert {tool.name for tool in (await client.list_tools()).tools} >= {"add", "log"}
    assert [link.partition("?")[0] for link in talk.links] == [f"{notes.origin}/authorize"]


async def test_a_declined_link_is_not_offered_again(tmp_path: Path, notes: Door):
    talk = Conversation(tmp_path, notes, agrees=False)
    with anyio.fail_after(60), talk.log.open("w") as stderr:
        async with talk.client(stderr) as client:
            assert "needs a login" in (client.instructions or "")
            for _ in range(2):
                with pytest.raises(mcp.MCPError):
                    await client.read_resource("notes://1")
            await until(lambda: "was declined" in talk.log.read_text())
    assert len(talk.links) == 1
    assert LoginStore(talk.environ).list() == []


async def test_a_login_in_the_middle_of_a_conversation(tmp_path: Path, notes: Door):
    talk = Conversation(tmp_path, notes)
    config, store = notes.config(), LoginStore(talk.environ)
    await log_in(config, store, Person().show)
    with anyio.fail_after(90), talk.log.open("w") as stderr:
        async with talk.client(stderr) as client:
            assert "line" in await call(client, "log")
            notes.check = {"other": {"notes:read"}}.get
            refused = await call(client, "log")
            assert refused.endswith(f"and then try again: overspill login {notes.url}")
            notes.pages["/token"] = page({"access_token": "other", "token_type": "Bearer"})
            await log_in(config, store, Person().show)
            assert "line" in await call(client, "log")
            process_list = "".join(
                path.read_bytes().decode(errors="replace")
                for path in Path("/proc").glob("[0-9]*/cmdline")
                if os.access(path, os.R_OK)
            )
    logged = talk.log.read_text()
    assert logged.count("The server notes needs a login.") == 1
    stored = [path for path in list_paths(tmp_path) if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert stored == []  # the login that had it was replaced
    assert TOKEN not in logged + refused + process_list


async def test_more_rights_in_the_middle_of_a_conversation(tmp_path: Path, notes: Door):
    notes.wanted_by_tool = {"add": {"notes:write"}}
    talk = Conversation(tmp_path, notes, agrees=True)
    await log_in(notes.config(), LoginStore(talk.environ), Person().show)
    asked: list[str] = []
    with anyio.fail_after(60), talk.log.open("w") as stderr:
        async with talk.client(stderr) as client:
            notes.pages["/token"] = page({"access_token": "other", "token_type": "Bearer", "scope": "notes:read notes:write"})
            assert "asks for more rights than its login has" in await call(client, "add")
            await until(lambda: LoginStore(talk.environ).list()[0].scope.endswith("write"))
            asked.append(await call(client, "add"))
    assert "line" in asked[0]
    assert "scope=notes%3Aread+notes%3Awrite" in talk.links[0]
