"""The proxy over HTTP among clients that mean harm: what they are refused, and what the others still get."""

import itertools
import select
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from http_proxy import ANN, BOB, ByHand, Listening, call
from waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PATIENCE = 60
MIB = 1024 * 1024
LET_IN = {200, 400}  # 400: of a client that has not said what it speaks


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    started = Listening(tmp_path_factory.mktemp("proxy"), "--allow-host", "proxy.example", "--allow-host", "near.example:99")
    try:
        yield started
    finally:
        started.end()


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    """No call goes to the background, however long a busy machine takes."""
    started = Listening(tmp_path, "--set", "asyncTimeoutSecs=100")
    try:
        yield started
    finally:
        started.end()


def port(proxy: Listening) -> int:
    found = httpx2.URL(proxy.url).port
    assert found
    return found


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Of this machine, signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now, names = datetime.now(UTC), x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    pem, kept = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(made.add_extension(names, critical=False).sign(key, hashes.SHA256()).public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, kept, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


def connect(proxy: Listening) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port(proxy)), timeout=PATIENCE)


def head(proxy: Listening, *lines: str, token: str | None = ANN, method: str = "POST", path: str = "/mcp") -> bytes:
    """As far as the blank line, without a Host where `lines` have one."""
    host = [] if any(line.startswith("Host:") for line in lines) else [f"Host: 127.0.0.1:{port(proxy)}"]
    token_line = [] if token is None else [f"Authorization: Bearer {token}"]
    usual = ["Accept: application/json, text/event-stream", "Content-Type: application/json"]
    text = "\r\n".join([f"{method} {path} HTTP/1.1", *host, *token_line, *usual, *lines, "", ""])
    return text.encode()


def answer(connection: socket.socket) -> tuple[int, dict[str, str]]:
    with connection.makefile("rb") as said:
        first = said.readline()
        assert first, "closed without an answer"
        lines = iter(said.readline, b"\r\n")
        headers = dict(line.decode().rstrip().lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers


def ask(proxy: Listening, *lines: str, **how: Any) -> tuple[int, dict[str, str]]:
    body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    with connect(proxy) as connection:
        connection.sendall(head(proxy, f"Content-Length: {len(body)}", "Connection: close", *lines, **how) + body.encode())
        return answer(connection)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "localhost:1",
        "[::1]:1",
        "127.0.0.1:PORT@evil.example",
        "localhost:PORT@evil.example",
        "evil.example@127.0.0.1:PORT",
        "user:secret@127.0.0.1:PORT",
        "127.0.0.1.:PORT",
        "localhost.:PORT",
        "localhost.evil.example:PORT",
        "127.0.0.1.evil.example:PORT",
        "localhost:PORT.evil.example",
        "127.0.0.1:PORT:80",
        "127.0.0.1:0PORT",
        "127.0.0.1:+PORT",
        "[::1",
        "::1:PORT",
        "[::1]:PORT@evil.example",
        "[::1%25lo]:PORT",
        "2130706433:PORT",
        "loca\u217chost:PORT",
        "near.example",
        "near.example:PORT9",
        "proxy.example.:PORT",
        "proxy.example:1",
        "",
    ],
)
def test_a_host_header_that_differs_in_one_character_is_refused(shared: Listening, host: str):
    assert ask(shared, "Host: " + host.replace("PORT", str(port(shared))))[0] == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:PORT",
        "localhost:PORT",
        "LocalHost:PORT",
        "[::1]:PORT",
        "proxy.example",
        "proxy.example:PORT",
        "near.example:99",
    ],
)
def test_the_proxys_own_host_names_are_let_in(shared: Listening, host: str):
    assert ask(shared, "Host: " + host.replace("PORT", str(port(shared))))[0] in LET_IN


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://localhost",
        "http://localhost:1",
        "http://localhost.evil.example",
        "http://localhost.evil.example:PORT",
        "http://127.0.0.1.evil.example:PORT",
        "http://localhost@evil.example",
        "http://127.0.0.1:80@evil.example",
        "http://127.0.0.1:PORT@evil.example",
        "http://localhost:PORT.evil.example",
        "http://localhost:PORT/",
        "http://localhost.:PORT",
        "http://loca\u217chost:PORT",
        "http://127.1:PORT",
        "ftp://localhost:PORT",
        "localhost:PORT",
        "//localhost:PORT",
        "chrome-extension://localhost:PORT",
        "http://localhost:PORT http://evil.example",
    ],
)
def test_an_origin_that_resembles_the_proxys_is_refused(shared: Listening, origin: str):
    assert ask(shared, "Origin: " + origin.replace("PORT", str(port(shared))))[0] == 403


def test_one_good_origin_does_not_excuse_another(shared: Listening):
    ours = f"Origin: http://localhost:{port(shared)}"
    assert ask(shared, ours)[0] in LET_IN
    assert ask(shared, ours, "Origin: http://evil.example")[0] == 403


@pytest.mark.parametrize("path", ["/mcp/", "/mcp", "/", "/elsewhere", "//mcp"])
@pytest.mark.parametrize(
    ("lines", "token", "status"),
    [([], None, 401), ([], "wrong", 401), (["Host: evil.example"], ANN, 421), (["Origin: http://evil.example"], ANN, 403)],
)
def test_a_refused_client_is_not_redirected(shared: Listening, path: str, lines: list[str], token: str | None, status: int):
    code, headers = ask(shared, *lines, token=token, path=path)
    assert (code, "location" in headers) == (status, False)


def test_a_trailing_slash_redirects_a_client_with_a_token(shared: Listening):
    code, headers = ask(shared, path="/mcp/")
    assert (code, headers["location"]) == (307, shared.url)


def test_no_connection_is_upgraded_to_another_protocol(shared: Listening):
    wanted = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
    ]
    with connect(shared) as connection:
        connection.sendall(head(shared, *wanted, token=None, method="GET"))
        assert answer(connection)[0] == 401


def test_a_body_that_is_too_large_is_refused_before_it_is_read(shared: Listening):
    with connect(shared) as declared:
        declared.sendall(head(shared, f"Content-Length: {64 * MIB + 1}"))
        assert answer(declared)[0] == 413
    with connect(shared) as chunked:
        chunked.sendall(head(shared, "Transfer-Encoding: chunked"))
        for _ in range(64):
            chunked.sendall(b"100000\r\n" + MIB * b" " + b"\r\n")
        chunked.sendall(b"1\r\n \r\n")
        assert answer(chunked)[0] == 413


HALF_OPEN: dict[str, Callable[[Listening], bytes]] = {
    "nothing": lambda _: b"",
    "half a line": lambda _: b"POST /mcp HT",
    "half of the headers": lambda proxy: head(proxy)[:-2],
    "half a body": lambda proxy: head(proxy, "Content-Length: 40") + b"{",
    "half a body in chunks": lambda proxy: head(proxy, "Transfer-Encoding: chunked") + b"1\r\n{\r\n",
    "half a body without a token": lambda proxy: head(proxy, "Content-Length: 40", token=None) + b"{",
    "half a body too many": lambda proxy: head(proxy, f"Content-Length: {65 * MIB}") + b"{",
    "one request and half of the next": lambda proxy: head(proxy, "Content-Length: 0", token=None) + b"POST /mcp",
    "one request and no other": lambda proxy: head(proxy, "Content-Length: 0", token=None),
}
DRIPS = b"X-A: " + 200 * b"b"
"""What goes on arriving, byte by byte, so that the connection is never quite silent."""


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


async def test_an_incomplete_request_is_dropped_while_a_long_call_is_not(listening: Listening):
    with ExitStack() as opened:
        waiting = opened.enter_context(httpx2.stream("POST", listening.url, **call("wait", {"until": "told"})))
        said = waiting.iter_lines()
        assert any("warming up" in line for line in said)
        silent, dripping = {}, {}
        for kind, first in HALF_OPEN.items():
            for connections in (silent, dripping):
                connections[kind] = opened.enter_context(connect(listening))
                connections[kind].sendall(first(listening))
        drips = iter(DRIPS * 100)

        def all_closed() -> bool:
            drop = bytes([next(drips)])
            left = [kind for kind, connection in silent.items() if not is_closed(connection)]
            for kind, connection in dripping.items():
                if not is_closed(connection):
                    left.append(kind)
                    with suppress(ConnectionError):
                        connection.send(drop)
            return not left

        await until(all_closed, within=PATIENCE)
        httpx2.post(listening.url, **call("release", {"word": "told"}))
        assert any("released" in line for line in said)
    _, complaints = listening.end()
    assert "Traceback" not in complaints


def files(proxy: Listening) -> int:
    return len(list(Path(f"/proc/{proxy.process.pid}/fd").iterdir()))


async def test_idle_connections_keep_no_client_out(listening: Listening):
    before = files(listening)
    with ExitStack() as opened:
        for first in (b"", b"POST /mcp HTTP/1.1\r\nHost: ", head(listening, "Content-Length: 9", token=None)):
            many = [opened.enter_context(connect(listening)) for _ in range(500)]
            for connection in many:
                with suppress(ConnectionError):
                    connection.sendall(first)
            assert httpx2.post(listening.url, **call("pid", {})).status_code == 200
        await until(lambda: files(listening) < before + 300)


def hold(proxy: Listening, opened: ExitStack, token: str = ANN) -> socket.socket:
    """A request that takes its place until the connection is closed."""
    connection = opened.enter_context(connect(proxy))
    connection.sendall(head(proxy, "Content-Length: 40", "Expect: 100-continue", token=token))
    return connection


async def test_a_flood_by_one_token_is_bounded_and_leaves_another_its_share(listening: Listening):
    with ExitStack() as opened:
        held = [hold(listening, opened) for _ in range(256)]
        assert {answer(connection)[0] for connection in held} == {100}
        code, headers = ask(listening)
        assert (code, headers["retry-after"]) == (429, "1")
        assert ask(listening, token=BOB)[0] in LET_IN
        held[0].close()
        await until(lambda: ask(listening)[0] in LET_IN)


def test_the_bytes_that_one_token_sends_together_are_bounded(listening: Listening):
    chunk = b"100000\r\n" + MIB * b" " + b"\r\n"
    with ExitStack() as opened:
        sending = [opened.enter_context(connect(listening)) for _ in range(3)]
        for connection in sending:
            connection.sendall(head(listening, "Transfer-Encoding: chunked"))
        for connection in sending:
            connection.sendall(43 * chunk)
        # Which of them had the last of it read is not for us to say.
        readable, _, _ = select.select(sending, [], [], PATIENCE)
        code, headers = answer(readable[0])
        assert (code, headers["retry-after"]) == (429, "1")
        assert ask(listening, token=BOB)[0] in LET_IN


def test_a_stranger_who_queues_requests_gets_one_refusal_and_is_hung_up_on(shared: Listening) -> None:
    with connect(shared) as stranger:
        stranger.sendall(head(shared, token=None, method="GET") * 5)
        said = b"".join(iter(lambda: stranger.recv(65536), b""))
    assert said.count(b"HTTP/1.1 401 ") == said.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("given", ["a stream", "half a request"])
def test_a_proxy_that_is_ended_hangs_up_without_a_traceback(listening: Listening, given: str) -> None:
    session = ByHand(listening.url).session
    with connect(listening) as client:
        if given == "a stream":
            client.sendall(head(listening, f"Mcp-Session-Id: {session}", method="GET"))
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        else:
            client.sendall(head(listening, "Content-Length: 100") + b"{")
            assert listening.post(Authorization=f"Bearer {ANN}").status_code in LET_IN
        assert listening.end() == (0, "")


def test_a_body_that_is_invalid_leaves_nothing_in_the_log(listening: Listening) -> None:
    kinds = itertools.product([None, ANN], ["", "Expect: 100-continue"], ["at once", "later"])
    for token, expectation, when in kinds:
        start = head(listening, "Transfer-Encoding: chunked", *filter(None, [expectation]), token=token)
        with connect(listening) as client, suppress(ConnectionResetError):
            client.sendall(start if when == "later" else start + b"zz\r\n")
            if when == "later":
                assert client.recv(65536) if token is None or expectation else b"no answer yet"
                client.sendall(b"zz\r\n")
            while client.recv(65536):
                pass
    assert listening.post(Authorization=f"Bearer {ANN}").status_code in LET_IN
    assert listening.end() == (0, "")


def test_a_stranger_who_does_not_agree_to_end_tls_uses_up_no_descriptors(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    proxy = Listening(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key), max_files=96)
    secure = ssl.create_default_context(cafile=str(certificate))
    with ExitStack() as opened:
        opened.callback(proxy.end)
        for _ in range(120):
            stranger = opened.enter_context(secure.wrap_socket(connect(proxy), server_hostname="127.0.0.1"))
            stranger.sendall(head(proxy, "Connection: close", token=None, method="GET"))
            assert stranger.recv(20).startswith(b"HTTP/1.1 401 ")
        headers = {"Authorization": f"Bearer {ANN}"}
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert httpx2.post(proxy.url, json=message, headers=headers, verify=secure, timeout=PATIENCE).status_code in LET_IN
    assert proxy.process.returncode == 0
