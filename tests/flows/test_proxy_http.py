"""The proxy over HTTP: who is let in, and what belongs to whom."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from extras import OFFERED
from forked import run as run_forked
from http_proxy import ANN, BOB, SERVER, Listening, call, environ
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult
from waiting import until

TWO_LINES = "line 1: the quick brown fox\nline 2: the quick brown fox\n"

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    started = Listening(tmp_path)
    try:
        yield started
    finally:
        code, said = started.end()
        assert (code, said) == (0, "")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """For tests that leave nothing behind."""
    started = Listening(tmp_path_factory.mktemp("proxy"))
    try:
        yield started
    finally:
        started.end()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Listening]:
    """No call goes to the background, however long a busy machine takes."""
    started = Listening(tmp_path, "--set", "asyncTimeoutSecs=100")
    try:
        yield started
    finally:
        started.end()


async def test_many_kinds_of_clients_do_not_end_each_others_calls(patient: Listening) -> None:
    def pid(kind: str) -> str:
        return httpx2.post(patient.url, **call("pid", {}, kind)).json()["result"]["content"][0]["text"]

    first = pid("first")
    with httpx2.stream("POST", patient.url, **call("wait", {"until": "told"}, "first")) as answer:
        said = answer.iter_lines()
        assert any("warming up" in line for line in said)
        kinds = [f"kind {number}" for number in range(8)]
        pids = {kind: pid(kind) for kind in kinds}
        await until(lambda: patient.servers() == 8)
        # The eighth took the place of the one that was used least recently and had nothing to do.
        assert [pid(kind) == pids[kind] for kind in kinds[1:]] == [True] * 7
        assert pid("first") == first
        httpx2.post(patient.url, **call("release", {"word": "told"}, "first"))
        assert any("released" in line for line in said)
        assert pid(kinds[0]) != pids[kinds[0]]


@pytest.mark.parametrize(
    ("mood", "message"),
    [
        ({}, "Mcp-Param-Mood header is missing but the request body's 'mood' argument is present"),
        ({"Mcp-Param-Mood": "sad"}, "Mcp-Param-Mood header does not match the request body's 'mood' argument"),
    ],
)
def test_a_header_that_contradicts_its_argument_is_refused(shared: Listening, mood: dict[str, str], message: str) -> None:
    answer = httpx2.post(shared.url, **call("release", {"mood": "glad"}, **mood))
    assert (answer.status_code, answer.json()["error"]) == (400, {"code": -32020, "message": message})


def test_a_lone_surrogate_becomes_a_replacement_character(shared: Listening) -> None:
    """In everything a server says to a client of the older protocol, which the SDK writes."""
    with httpx2.Client(headers={"Authorization": f"Bearer {ANN}", "Accept": "application/json, text/event-stream"}) as http:

        def post(message: dict[str, object]) -> list[dict[str, Any]]:
            answer = http.post(shared.url, json={"jsonrpc": "2.0", **message}, timeout=60)
            http.headers.update({name: answer.headers[name] for name in ("mcp-session-id",) if name in answer.headers})
            return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]

        who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
        post({"id": 1, "method": "initialize", "params": who})
        post({"method": "notifications/initialized"})
        half = {"name": "half", "_meta": {"progressToken": "p"}}
        logged, progress, answer = post({"id": 2, "method": "tools/call", "params": half})
        shown = "half of one \ufffd"
        assert (logged["params"]["data"], progress["params"]["message"]) == (shown, shown)
        assert answer["result"] == {"content": [{"type": "text", "text": shown}], "structuredContent": {shown: shown}}
        *_, refusal = post({"id": 3, "method": "tools/call", "params": {**half, "arguments": {"fail": True}}})
        assert refusal["error"] == {"code": -32000, "message": shown, "data": [shown]}


async def kept_by(client: Client) -> str:
    result = await client.call_tool("lines", {"count": 3000})
    found = re.search(r'session-[^"]+|\bout_[0-9a-z]+', result.content[0].text)  # pyright: ignore
    assert found
    return found.group()


async def read(client: Client, handle: str) -> str:
    wanted = {"id": handle, "mode": "slice", "slice": {"lines": "1-2"}}
    result = await client.call_tool("get_tool_output", wanted)
    return result.content[0].text  # pyright: ignore


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {ANN}"}, 401),
        ({"Authorization": f"Bearer {ANN}x"}, 401),
        ({"Authorization": f"Bearer {ANN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {ANN}", "Origin": "https://evil.example"}, 403),
    ],
)
def test_a_client_without_a_token_or_with_a_foreign_name_is_refused(shared: Listening, headers: dict[str, str], status: int):
    assert shared.post(**headers).status_code == status


def test_a_refusal_says_what_is_needed(shared: Listening):
    answer = shared.post()
    assert answer.text == "This proxy requires a bearer token."
    assert answer.headers["www-authenticate"] == 'Bearer realm="overspill"'


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_large_result_is_kept_and_read_back(shared: Listening, mode: str):
    async with shared.client(ANN, mode) as client:
        handle = await kept_by(client)
        assert await read(client, handle) == TWO_LINES
        page = await client.list_tools()
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
        last = [tool.name for tool in page.tools][-len(OFFERED) :]
        assert last == OFFERED


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.promise("nobody-elses")
async def test_a_handle_of_one_token_is_unknown_to_another(shared: Listening, mode: str):
    async with shared.client(ANN, mode) as ann, shared.client(BOB, mode) as bob:
        handle = await kept_by(ann)
        assert (
            await read(bob, handle) == f"Unknown tool ID: {handle[:97]}..."
            or await read(bob, handle) == f"Unknown tool ID: {handle}"
        )
        with pytest.raises(MCPError):
            await bob.read_resource(f"overspill://{handle}")


async def test_a_handle_works_in_every_session_of_its_token(shared: Listening):
    """Nobody can tell whether the session that stored it has vanished or is only quiet."""
    async with shared.client(ANN) as one, shared.client(ANN) as other:
        handle = await kept_by(one)
        assert await read(other, handle) == TWO_LINES


async def test_clients_of_the_newer_protocol_share_what_their_token_kept(shared: Listening):
    async with shared.client(ANN, "auto") as one:
        handle = await kept_by(one)
    async with shared.client(ANN, "auto") as other:
        assert await read(other, handle) == TWO_LINES


async def test_a_question_reaches_the_client_whose_call_asks_it(shared: Listening):
    asked: list[str] = []

    def answering(name: str) -> object:
        async def answer(_: object, params: ElicitRequestParams) -> ElicitResult:
            asked.append(name)
            return ElicitResult(action="accept", content={"word": name})

        return answer

    wanted = {"message": "Which word?", "requestedSchema": {"type": "object", "properties": {}}}
    question = {"method": "elicitation/create", "params": wanted}
    async with (
        shared.client(ANN, elicitation_callback=answering("ann")) as ann,
        shared.client(BOB, elicitation_callback=answering("bob")) as bob,
    ):
        result = await bob.call_tool("ask", {"requests": [question]})
        assert "bob" in result.content[0].text  # pyright: ignore
        await ann.call_tool("say", {"result": {"content": []}})
    assert asked == ["bob"]


async def test_an_old_handle_works_after_a_restart(tmp_path: Path):
    first = Listening(tmp_path)
    try:
        async with first.client(ANN) as client:
            handle = await kept_by(client)
    finally:
        first.end()
    second = Listening(tmp_path)
    try:
        async with second.client(ANN) as client:
            assert await read(client, handle) == TWO_LINES
        async with second.client(BOB) as client:
            assert (await read(client, handle)).startswith("Unknown tool ID: ")
    finally:
        second.end()


async def test_a_session_that_ends_takes_its_server_along(listening: Listening):
    async with listening.client(ANN) as client:
        await client.call_tool("say", {"result": {"content": []}})
        assert listening.servers() == 1
    await until(lambda: not listening.servers())


@pytest.mark.promise("nobody-elses")
async def test_tokens_do_not_reach_servers(shared: Listening):
    async with shared.client(ANN) as client:
        pid = (await client.call_tool("pid", {})).content[0].text  # pyright: ignore
        theirs = Path(f"/proc/{pid}/environ").read_text()
    assert "XDG_STATE_HOME=" in theirs
    assert [token for token in (ANN, BOB) if token in theirs] == []


async def test_a_token_is_made_and_shown_once_where_none_is_given(tmp_path: Path):
    started = Listening(tmp_path, "--no-token")
    try:
        assert started.process.stderr is not None
        words = started.process.stderr.readline()
        assert words.startswith("overspill: the token, shown only once: ")
        token = words.split()[-1]
        assert len(token) >= 40
        async with started.client(token) as client:
            assert (await client.list_tools()).tools
    finally:
        code, said = started.end()
    assert code == 0
    assert token not in said


def run(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    line = ["proxy", *options, "--", sys.executable, str(SERVER)]
    return run_forked(line, env=environ(root), capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--http", "8850"], "overspill: error: --http 8850 is not HOST:PORT, for example 127.0.0.1:8850.\n"),
        (
            ["--http", "127.0.0.1:99999"],
            "overspill: error: --http 127.0.0.1:99999 is not HOST:PORT, for example 127.0.0.1:8850.\n",
        ),
        (["--http", "127.0.0.1:0", "--token-env", "NOBODY"], "overspill: error: The environment variable NOBODY is not set.\n"),
        (
            ["--http", "0.0.0.0:0"],
            "overspill: error: 0.0.0.0 can be reached from other machines, and without TLS anyone on the network can listen in. "
            "Pass --tls-cert and --tls-key, or --insecure if something else encrypts the connection.\n",
        ),
    ],
)
def test_a_mistake_is_explained_before_anything_is_started(tmp_path: Path, options: list[str], words: str):
    ended = run(tmp_path, *options)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", words)


def test_an_address_in_use_is_explained(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run(tmp_path, "--http", f"127.0.0.1:{port}")
    words = f"overspill: error: Cannot listen on 127.0.0.1:{port}: Address already in use.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", words)


def test_an_unknown_host_name_is_explained(tmp_path: Path):
    with pytest.raises(socket.gaierror) as unknown:
        socket.getaddrinfo("nowhere.invalid", 0)
    ended = run(tmp_path, "--http", "nowhere.invalid:0", "--insecure")
    words = f"overspill: error: Cannot listen on nowhere.invalid:0: {unknown.value.strerror}.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", words)


def test_an_invalid_certificate_is_explained(tmp_path: Path):
    (tmp_path / "cert.pem").write_text("nothing of the kind")
    ended = run(tmp_path, "--http", "127.0.0.1:0", "--tls-cert", str(tmp_path / "cert.pem"))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"overspill: error: {tmp_path / 'cert.pem'} cannot be used for TLS with this key: ")
