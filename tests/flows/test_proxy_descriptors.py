"""The proxy over HTTP that has no file left to open: it says so once, and serves the clients it has."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest
from http_proxy import ByHand, Listening
from waiting import wait_until

MAX_FILES = 96
SHORT, ENOUGH = "files open that it may have", "can open enough files again"


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    started = Listening(tmp_path, "--set", "asyncTimeoutSecs=100", max_files=MAX_FILES)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate(timeout=30)


def connect_strangers(proxy: Listening, opened: ExitStack, count: int) -> list[socket.socket]:
    """They say nothing, or half of something."""
    found: list[socket.socket] = []
    for number in range(count):
        stranger = opened.enter_context(socket.socket())
        stranger.settimeout(60)
        with suppress(OSError):
            stranger.connect(("127.0.0.1", httpx2.URL(proxy.url).port))
            stranger.sendall(b"POST /mcp HTTP/1.1\r\nHost: " if number % 2 else b"")
        found.append(stranger)
    return found


@pytest.mark.slow
def test_strangers_use_up_no_descriptors_and_keep_nobody_out(listening: Listening):
    known = ByHand(listening.url)
    with ExitStack() as opened:
        for _ in range(3):
            connect_strangers(listening, opened, 200)
            assert known.text("lines", {"count": 3}).count("\n") == 3
            assert ByHand(listening.url, name="new").text("pid").isdigit()
    code, said = listening.end()
    assert (code, said) == (0, "")


def join(proxy: Listening) -> ByHand | None:
    """A new session; None if it is told to come again later."""
    try:
        return ByHand(proxy.url)
    except httpx2.HTTPStatusError as refusal:
        answer = refusal.response
    return None if (answer.status_code, answer.headers["retry-after"]) == (503, "1") else pytest.fail(answer.text)


@pytest.mark.slow
def test_a_proxy_without_descriptors_says_so_once_and_serves_the_clients_it_has(listening: Listening):
    known = ByHand(listening.url)
    sessions = list(iter(lambda: join(listening), None))  # each has a server process, with its pipes
    with ExitStack() as opened:
        for _ in range(3):
            connect_strangers(listening, opened, 200)
            assert "stored" in known.text("lines", {"count": 5000})  # which needs files in the store
            assert join(listening) is None
    for each in sessions:
        each.leave()
    wait_until(lambda: join(listening))
    code, said = listening.end()
    assert (code, said.count(SHORT), said.count(ENOUGH), said.count("Traceback")) == (0, 1, 1, 0)
    assert said.index(SHORT) < said.index(ENOUGH)
