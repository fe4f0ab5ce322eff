"""A server over HTTP: what goes wrong on the way is said in plain words, without its address and headers, and is got over."""

import logging
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import anyio
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification
from upstream import Web, connected, said, up, web, words
from waiting import until

from overspill.errors import ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.peer import Peer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SECRET = "s3cret"  # noqa: S105
AWAY = r"The server web cannot be reached: [^:]*(:\d+ failed)?\. Overspill keeps trying to reach it; try again in a moment\."


@pytest.fixture(scope="module")
def by_hand() -> Iterator[Web]:
    with web("web") as server:
        yield server


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Nothing that is logged at any level may hold a secret."""
    caplog.set_level(logging.DEBUG)
    yield caplog
    records = caplog.get_records("call")  # by now, `caplog.text` and `caplog.records` are those of the teardown alone
    assert SECRET not in "".join(map(logging.Formatter().format, records))
    assert SECRET not in str([vars(record) for record in records])


# httpx2 leaves the streams of answers that were not read to their end to the garbage collector, which trio minds.
left_open = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


async def failure(server: Any, tool: str, **arguments: Any) -> str:
    with pytest.raises(ServerError) as caught:
        await server.call_tool(tool, arguments)
    assert SECRET not in str(caught.value)
    return str(caught.value)


async def test_what_is_sent_and_seen_is_as_configured(by_hand: Web, logs: pytest.LogCaptureFixture):
    headers = {"Authorization": f"Bearer {SECRET}", "User-Agent": "me", "X-Odd": " spaced\n", "Accept": "wrong"}
    async with up(by_hand.config(f"/mcp?key={SECRET}", headers)) as server:
        seen, arguments, path = said(await server.call_tool("echo", {"text": "a\ud800b", "number": 2**80}))
    assert (arguments, path) == ({"text": "a\ud800b", "number": 2**80}, f"/mcp?key={SECRET}")
    names = ("authorization", "user-agent", "x-odd", "accept", "mcp-protocol-version")
    assert {name: seen["headers"][name] for name in names} == {
        "authorization": f"Bearer {SECRET}",
        "user-agent": "me",
        "x-odd": "spaced",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    assert re.fullmatch(r"127\.0\.0\.1:\d+", seen["headers"]["host"])
    assert "POST http://server/web " in logs.text


async def test_a_programs_own_connections_are_still_logged_and_ours_are_not(by_hand: Web, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    own = by_hand.config("/mcp", {})
    async with up(own) as server:
        await server.call_tool("echo", {"text": "of overspill"})
        async with streamable_http_client(own.url) as (_, write):
            await write.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="of the program")))
            await until(lambda: "of the program" in caplog.text)
        await server.call_tool("echo", {"text": "of overspill"})
    messages = [record.getMessage() for record in caplog.records if record.name == "mcp.client.streamable_http"]
    assert any("of the program" in message for message in messages)
    assert not any("of overspill" in message or "Received session ID" in message for message in messages)


async def test_arguments_that_a_tool_wants_in_headers_are_there_too(by_hand: Web):
    async with up(by_hand.config("/modern")) as server:
        assert [tool["name"] for tool in await server.list_tools()] == ["echo"]
        seen, arguments, _ = said(await server.call_tool("echo", {"region": "north"}))
        assert arguments == {"region": "north"}
        names = ("mcp-method", "mcp-name", "mcp-param-region", "mcp-protocol-version")
        assert [seen["headers"][name] for name in names] == ["tools/call", "echo", "north", "2026-07-28"]


async def test_a_login_in_the_url_is_sent_as_a_header(by_hand: Web):
    config = by_hand.config()
    async with up(ServerConfig("web", url=config.url.replace("//", f"//me:{SECRET}@"))) as server:
        seen, *_ = said(await server.call_tool("echo", {}))
        assert seen["headers"]["authorization"] == "Basic bWU6czNjcmV0"


async def test_a_redirect_to_the_same_place_is_followed(by_hand: Web, logs: pytest.LogCaptureFixture):
    async with up(by_hand.config("/moved")) as server:
        assert said(await server.call_tool("echo", {}))[2] == f"/moved/here?key={SECRET}"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/401", "HTTP status 401 (Unauthorized); check its headers, or log in with `overspill login`"),
        ("/403", "HTTP status 403 (Forbidden); check its headers"),
        ("/404", "HTTP status 404 (Not Found); check its url"),
        ("/405", "HTTP status 405 (Method Not Allowed); check its url"),
        ("/500", "HTTP status 500 (Internal Server Error)"),
        ("/elsewhere", "a redirect to http://other.example, which Overspill does not follow; set it as the url"),
        ("/circle", "too many redirects"),
    ],
)
async def test_a_server_that_cannot_be_greeted_says_why(by_hand: Web, logs: pytest.LogCaptureFixture, path: str, why: str):
    async with up(by_hand.config(f"{path}?key={SECRET}", {"Key": SECRET})) as server:
        with pytest.raises(ServerError) as caught:
            await server.wait_until_connected()
        assert str(caught.value) == (
            f"The server web refused to start a session: {why}. Overspill keeps trying to reach it; try again in a moment."
        )


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("html", "Unexpected content type: text/html"),
        ("garbage", "The server web answered with something that is not an MCP message."),
        ("sse_garbage", "The server web answered with something that is not an MCP message."),
        ("cut", "The connection to the server web broke before it answered."),
        ("sse_cut", "The server web closed the stream before its answer was complete: SSE stream ended without a response."),
        ("drop", "The connection to the server web broke before it answered."),
        ("refuse", "Bad arguments"),
    ],
)
@left_open
async def test_an_answer_that_goes_wrong_costs_one_call_and_not_the_link(
    by_hand: Web, logs: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], tool: str, words: str
):
    async with up(by_hand.config(headers={"Key": SECRET})) as server:
        with pytest.raises((ServerError, MCPError)) as caught:
            await server.call_tool(tool, {})
        assert getattr(caught.value, "message", str(caught.value)) == words
        assert said(await server.call_tool("echo", {}))[1] == {}
        assert server.starts == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("tool", ["half", "sse_half"])
@left_open
@pytest.mark.promise("small-things-untouched")
async def test_half_a_character_arrives_as_it_was_sent(by_hand: Web, tool: str):
    heard: list[Any] = []

    class Listening(Peer):
        async def on_notification(self, server: str, method: str, params: dict[str, Any]) -> None:
            heard.append(params["data"])

    async with connected(by_hand.config(), Listening()) as link:
        assert words(await link.request("tools/call", {"name": tool})) == "half of one \ud83d"
        with pytest.raises(MCPError) as caught:
            await link.request("tools/call", {"name": "refuse_half"})
        assert (caught.value.message, caught.value.data) == ("half of one \ud83d", ["half of one \ud83d"])
    assert heard == (["half of one \ud83d"] if tool == "sse_half" else [])


@pytest.mark.parametrize("status", [401, 404, 429, 503])
async def test_a_status_in_place_of_an_answer_is_named(by_hand: Web, status: int):
    async with up(by_hand.config()) as server:
        words = await failure(server, "status", status=status)
        if status == 404:
            assert words.startswith("The server web no longer knows this session. It may have restarted.")
        else:
            assert words.startswith(f"The server web answered with HTTP status {status} (")


@pytest.mark.parametrize("tool", ["forget", "forget_oddly"])
async def test_a_session_that_the_server_forgot_is_opened_again_and_the_call_made_again(tool: str):
    with web("web") as server:
        async with up(server.config()) as upstream:
            assert words(await upstream.call_tool(tool, {})) == "session-2"
            assert upstream.starts == 2
        assert server.said() == "ended session-2\n"


@pytest.mark.parametrize(
    "words",
    [
        {"code": -32001, "message": "Session not found"},
        {"code": -32600, "message": "Invalid session"},
        {"code": -32000, "message": "Bad Request: Mcp-Session-Id header is required"},
        {"code": -32000, "message": "The session has expired."},
    ],
)
async def test_a_session_is_known_to_be_lost_in_the_words_of_many_servers(words: dict[str, Any]):
    with web("web") as server:
        async with up(server.config()) as upstream:
            await upstream.call_tool("forget_oddly", words)
            assert upstream.starts == 2


@pytest.mark.parametrize(
    "words",
    [
        {"code": -32602, "message": "Invalid params: no training session on that day"},
        {"code": -32000, "message": "There is no training session on that day"},
        {"code": -32603, "message": "Session not found"},
    ],
)
async def test_a_tool_that_speaks_of_sessions_of_its_own_is_called_once(words: dict[str, Any]):
    with web("web") as server:
        async with up(server.config()) as upstream:
            with pytest.raises(MCPError) as caught:
                await upstream.call_tool("forget_oddly", words)
            assert (caught.value.code, caught.value.message) == (words["code"], words["message"])
            assert upstream.starts == 1


async def test_a_link_that_ended_for_its_session_says_so():
    with web("web") as server:
        async with connected(server.config()) as link:
            with pytest.raises(ServerError) as caught:
                await link.request("tools/call", {"name": "forget"})
            assert str(caught.value) == "The server web no longer knows this session. It may have restarted."
            assert link.ended.is_set()


async def test_a_server_that_is_away_is_named_and_found_again():
    with web("web") as server:
        async with up(server.config(f"/mcp?key={SECRET}")) as upstream:
            await upstream.call_tool("echo", {})
            server.kill()
            words = await failure(upstream, "echo")
            assert re.fullmatch(AWAY, words)
            server.start()
            assert said(await upstream.call_tool("echo", {}))[0]["session"] == "session-1"


async def test_a_name_that_nobody_knows_is_a_clear_error():
    async with up(ServerConfig("web", url=f"http://nowhere.invalid/{SECRET}")) as server:
        assert (await failure(server, "echo")).startswith("The server web cannot be reached: ")


@pytest.mark.parametrize(
    "config",
    [
        ServerConfig("web", url=f"http://x:{SECRET}"),
        ServerConfig("web", url="http://127.0.0.1:1", headers={"Key": f"{SECRET}é"}),
    ],
)
async def test_an_address_or_header_that_cannot_be_used_is_not_shown(config: ServerConfig):
    async with up(config) as server:
        assert await failure(server, "echo") == (
            "The server web has a url or a header that cannot be used. Check both. "
            "Overspill keeps trying to reach it; try again in a moment."
        )


@pytest.mark.skipif(find_spec("socksio") is not None, reason="the package that is missed is there")
async def test_a_proxy_that_needs_a_package_says_which(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ALL_PROXY", f"socks5://me:{SECRET}@127.0.0.1:1")
    async with up(ServerConfig("web", url="http://nowhere.invalid/mcp")) as server:
        assert await failure(server, "echo") == (
            "The server web cannot be reached: your environment sets a SOCKS proxy, which needs the package "
            "socksio. Install it with `pip install socksio`, or add the server's host to NO_PROXY. "
            "Overspill keeps trying to reach it; try again in a moment."
        )


async def test_a_header_that_breaks_the_protocol_is_not_shown(by_hand: Web, logs: pytest.LogCaptureFixture):
    async with up(by_hand.config(headers={"Key": f"{SECRET}\nEvil: 1"})) as server:
        assert (await failure(server, "echo")).startswith(
            "The server web refused to start a session: The connection to the server web broke"
        )


@left_open
@pytest.mark.slow
async def test_an_answer_beyond_all_bounds_is_refused(by_hand: Web):
    async with up(by_hand.config()) as server:
        assert await failure(server, "huge", size=300_000_000) == (
            "The server web answered with a message of more than 268,435,456 bytes, the limit. Ask it for less."
        )
        assert said(await server.call_tool("echo", {}))[1] == {}


async def test_calls_that_all_meet_a_forgotten_session_are_all_made_again():
    with web("web") as server:
        async with up(server.config()) as upstream:
            sessions: list[str] = []

            async def call() -> None:
                sessions.append(words(await upstream.call_tool("forget", {})))

            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(call)
            assert (sessions, upstream.starts) == (["session-2"] * 10, 2)
