"""Servers behind a login, with authorization servers that others wrote: one from npm, one from PyPI."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import httpx2
import pytest
from login_servers import Door, FastServer, OidcProvider, Page, door, fastmcp_server, oidc_provider, visit
from msgspec.structs import replace

from overspill.errors import LoginNeeded, ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.flow import log_in
from overspill.mcp.client.login.keeper import TokenKeeper, revoke
from overspill.mcp.client.login.storage import Login, LoginStore
from overspill.mcp.client.server import Server, open_servers

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def oidc() -> Iterator[OidcProvider]:
    with oidc_provider() as started:
        yield started


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastServer]:
    with fastmcp_server(tmp_path_factory.mktemp("fastmcp")) as started:
        yield started


@pytest.fixture
def notes(oidc: OidcProvider) -> Iterator[Door]:
    with door(oidc.introspect) as opened:
        opened.describe(oidc.issuer)
        yield opened


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path)}


async def login_at(config: ServerConfig, environ: dict[str, str], **more: Any) -> Login:
    return await log_in(config, LoginStore(environ), visit, **more)


@contextmanager
def no_room_for_files() -> Generator[None]:
    """As on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def refuse(notes: Door, oidc: OidcProvider, refused: str) -> None:
    """As if this token had expired."""

    def check(token: str) -> set[str] | None:
        return None if token == refused else oidc.introspect(token)

    notes.check = check


async def call(server: Server, tool: str = "log", **arguments: Any) -> str:
    return str((await server.call_tool(tool, arguments)).content[0]["text"])[:4]


@pytest.mark.slow
async def test_a_server_from_pypi_works_after_a_login(fast: FastServer, environ: dict[str, str]):
    config = ServerConfig("notes", url=fast.url)
    login = await login_at(config, environ)
    assert (login.scope, login.in_keyring) == ("read", False)
    async with open_servers([config], environ) as servers:
        assert await call(servers["notes"], "add", a=1, b=2) == "3"


async def test_calls_at_the_same_time_do_not_wait_for_each_other(notes: Door, environ: dict[str, str]):
    await login_at(notes.config(), environ)
    keeper, tokens = TokenKeeper(notes.config(), environ), set[str]()

    async def ask() -> None:
        tokens.add(await keeper.get_token())

    async with LoginStore(environ).lock(notes.url):  # held by somebody who renews it
        with anyio.fail_after(30):  # the lock would be waited for twice as long
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(ask)
    assert len(tokens) == 1


async def test_a_token_is_renewed_before_it_expires_and_its_refresh_token_rotates(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    before = await login_at(notes.config(), environ)
    assert before.expires_at
    now = [before.expires_at - 130]
    keeper = TokenKeeper(notes.config(), environ, clock=lambda: now[0])
    assert await keeper.get_token() == before.tokens.access
    now[0] = before.expires_at - 110  # a fifth of ten minutes is left
    renewed = await keeper.get_token()
    after = await LoginStore(environ).read(notes.url)
    assert after
    assert after.tokens.access == renewed != before.tokens.access
    assert after.tokens.refresh != before.tokens.refresh
    assert oidc.introspect(renewed) == {"notes:read"}


async def test_a_restart_renews_an_expired_token_without_a_person(notes: Door, oidc: OidcProvider, environ: dict[str, str]):
    login, refreshed = await login_at(notes.config(), environ), oidc.refreshed
    refuse(notes, oidc, login.tokens.access)
    async with open_servers([notes.config()], environ) as servers:
        assert await call(servers["notes"]) == "line"
    assert oidc.refreshed == refreshed + 1


async def test_a_revoked_login_names_the_command_and_works_again_without_a_restart(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    login, lines = await login_at(notes.config(), environ), list[str]()
    async with open_servers([notes.config()], environ, log=lines.append) as servers:
        assert await call(servers["notes"]) == "line"
        oidc.revoke(login.tokens.refresh, login.client_id)
        with pytest.raises(LoginNeeded, match=f"needs a login.* overspill login {notes.url}$"):
            await call(servers["notes"])
        await login_at(notes.config(), environ)
        assert await call(servers["notes"]) == "line"
    assert login.tokens.access not in str(lines)


async def test_a_server_without_a_login_waits_for_one(notes: Door, environ: dict[str, str]):
    lines: list[str] = []
    async with open_servers([notes.config()], environ, log=lines.append) as servers:
        with pytest.raises(LoginNeeded):
            await call(servers["notes"])
        await login_at(notes.config(), environ)
        with anyio.fail_after(20):
            assert await call(servers["notes"]) == "line"
    said = "The server notes needs a login. Ask the user to run this in a terminal, and then try again: overspill login"
    assert lines == [f"{said} {notes.url}"]


async def test_a_tool_that_wants_more_rights_gets_them_with_the_next_login(notes: Door, environ: dict[str, str]):
    notes.wanted_by_tool = {"log": {"notes:write"}}
    first = await login_at(notes.config(), environ)
    async with open_servers([notes.config()], environ) as servers:
        assert await call(servers["notes"], "add") == "line"
        with pytest.raises(LoginNeeded, match="asks for more rights"):
            await call(servers["notes"])
        second = await login_at(notes.config(), environ)
        assert set(second.scope.split()) >= {"notes:read", "notes:write"}
        assert await call(servers["notes"]) == "line"
    assert second.client_id != first.client_id  # it was registered for less
    assert second.wanted_scope == ""


async def test_a_registration_is_used_again_and_made_anew_where_its_port_is_taken(notes: Door, environ: dict[str, str]):
    first = await login_at(notes.config(), environ)
    again = await login_at(notes.config(), environ)
    assert (again.client_id, again.redirect_port) == (first.client_id, first.redirect_port)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=first.redirect_port):
        other = await login_at(notes.config(), environ)
    assert other.client_id != first.client_id
    assert other.redirect_port != first.redirect_port


async def test_a_hosted_document_takes_the_place_of_a_registration(notes: Door, environ: dict[str, str]):
    hosted = "https://overspill.example/client.json"
    login = await login_at(notes.config(client_metadata_url=hosted), environ)
    assert (login.client_id, login.tokens.client_secret) == (hosted, "")
    assert await TokenKeeper(notes.config(), environ).renew(login.tokens.access) != login.tokens.access


async def test_a_document_that_nobody_can_host_is_an_error(notes: Door, environ: dict[str, str]):
    with pytest.raises(ServerError, match=r"login.clientMetadataUrl must be an https address with a path."):
        await login_at(notes.config(client_metadata_url="http://overspill.example/"), environ)


async def test_logging_out_revokes_the_tokens_and_removes_them(notes: Door, oidc: OidcProvider, environ: dict[str, str]):
    login, store = await login_at(notes.config(), environ), LoginStore(environ)
    assert await revoke(notes.config(), store)
    assert (await store.read(notes.url), store.list()) == (None, [])
    assert oidc.introspect(login.tokens.access) is None


async def test_ten_sessions_of_one_process_that_renew_at_the_same_time_spend_one_refresh_token(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    login, refreshed, tokens = await login_at(notes.config(), environ), oidc.refreshed, set[str]()

    async def renew() -> None:
        tokens.add(await TokenKeeper(notes.config(), environ).renew(login.tokens.access))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(renew)
    assert len(tokens) == 1
    assert oidc.refreshed == refreshed + 1


RENEW = """
import sys, anyio
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.keeper import TokenKeeper
url, folder, rejected = sys.argv[1:]
input()
print(anyio.run(TokenKeeper(ServerConfig("notes", url=url), {"XDG_DATA_HOME": folder}).renew, rejected))
"""


@pytest.mark.slow
async def test_ten_processes_that_renew_at_the_same_time_spend_one_refresh_token(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    login, refreshed = await login_at(notes.config(), environ), oidc.refreshed
    command = [sys.executable, "-c", RENEW, notes.url, environ["XDG_DATA_HOME"], login.tokens.access]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(10)]  # noqa: ASYNC220
    answers = {process.communicate("\n", timeout=120)[0].strip() for process in processes}
    assert len(answers) == 1
    assert answers != {login.tokens.access}
    assert oidc.refreshed == refreshed + 1


KILLED = """
import os, signal, sys, anyio
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.keeper import TokenKeeper
url, folder, rejected = sys.argv[1:]
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # the new token is there, and the login not yet written
anyio.run(TokenKeeper(ServerConfig("notes", url=url), {"XDG_DATA_HOME": folder}).renew, rejected)
"""


@pytest.mark.slow
async def test_a_process_that_is_killed_before_it_wrote_a_rotated_token_leaves_a_login_to_do_again(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    login, refreshed, lines = await login_at(notes.config(), environ), oidc.refreshed, list[str]()
    command = [sys.executable, "-c", KILLED, notes.url, environ["XDG_DATA_HOME"], login.tokens.access]
    assert subprocess.run(command, timeout=60, check=False).returncode == -signal.SIGKILL  # noqa: ASYNC221
    assert oidc.refreshed == refreshed + 1  # the token in the file is spent
    refuse(notes, oidc, login.tokens.access)
    with anyio.fail_after(30):  # nobody holds the lock any more
        async with open_servers([notes.config()], environ, log=lines.append) as servers:
            with pytest.raises(LoginNeeded, match="The server notes needs a login"):
                await call(servers["notes"])
            await login_at(notes.config(), environ)
            assert await call(servers["notes"]) == "line"
    assert [line.partition(".")[0] for line in lines] == ["The server notes needs a login"]


async def test_a_conversation_that_ends_during_a_renewal_does_not_lose_the_new_tokens(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    """The authorization server has spent the old refresh token by then."""
    login, sent, answered = await login_at(notes.config(), environ), anyio.Event(), threading.Event()

    def relay(body: bytes) -> Page:
        answer = httpx2.post(login.token_endpoint, content=body, headers={"content-type": "application/x-www-form-urlencoded"})
        anyio.from_thread.run_sync(sent.set, token=here)
        answered.wait(30)
        return answer.status_code, {"content-type": "application/json"}, answer.content

    here = anyio.lowlevel.current_token()
    notes.pages["/slow"] = relay
    await LoginStore(environ).write(replace(login, token_endpoint=f"{notes.origin}/slow"))
    async with anyio.create_task_group() as group:
        group.start_soon(TokenKeeper(notes.config(), environ).renew, login.tokens.access)
        await sent.wait()
        group.cancel_scope.cancel()
        answered.set()
    after = await LoginStore(environ).read(notes.url)
    assert after
    assert after.tokens.refresh != login.tokens.refresh
    assert oidc.introspect(await TokenKeeper(notes.config(), environ).renew(after.tokens.access)) == {"notes:read"}


async def test_a_renewed_login_that_cannot_be_written_is_reported_and_used(
    notes: Door, oidc: OidcProvider, environ: dict[str, str]
):
    login, lines = await login_at(notes.config(), environ), list[str]()
    with no_room_for_files():
        renewed = await TokenKeeper(notes.config(), environ, lines.append).renew(login.tokens.access)
    assert oidc.introspect(renewed) == {"notes:read"}
    told = "The renewed login of notes could not be written: File too large. It works until this process ends. After that, log in"
    assert lines == [f"{told} again."]
    refreshed = oidc.refreshed
    for another in (TokenKeeper(notes.config(), environ), TokenKeeper(notes.config(), environ)):  # of other sessions
        assert await another.get_token() == await another.renew(login.tokens.access) == renewed
    assert oidc.refreshed == refreshed


async def test_tokens_are_in_a_file_that_only_the_owner_can_read(notes: Door, environ: dict[str, str], tmp_path: Path):
    await login_at(notes.config(), environ)
    folder = tmp_path / "overspill" / "logins"
    modes = {path.name.partition(".")[2]: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {"json": 0o600, "lock": 0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    stored = json.loads(next(folder.glob("*.json")).read_bytes())
    assert stored["tokens"]["access"]
    assert os.listdir(tmp_path) == ["overspill"]
