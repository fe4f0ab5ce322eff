"""The page that a browser returns to after a login takes one answer, with the right state, once."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.lowlevel
import httpx2
import pytest

from overspill.errors import ServerError
from overspill.mcp.client.login import callback as module
from overspill.mcp.client.login.callback import Callback, open_callback

pytestmark = pytest.mark.anyio
ASKED = "https://auth.example/authorize?state=right"


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Callback, httpx2.AsyncClient]]:
    async with open_callback(0) as callback, httpx2.AsyncClient(timeout=60) as browser:
        callback.expect(ASKED)
        yield callback, browser


async def test_an_answer_counts_once():
    async with opened() as (callback, browser):
        first = await browser.get(f"{callback.address}?code=one&state=right&iss=https://auth.example")
        second = await browser.get(f"{callback.address}?code=two&state=right")
        result = await callback.wait()
    assert (first.status_code, second.status_code) == (200, 400)
    assert (result.code, result.state, result.iss) == ("one", "right", "https://auth.example")


@pytest.mark.parametrize(
    "query",
    ["code=x&state=wrong", "code=x", "state=right", "", "code=x&state=right&" + "&".join(map("a{0}=1".format, range(60))), "%ff"],
)
async def test_a_wrong_answer_is_refused_and_the_right_one_still_counts(query: str):
    async with opened() as (callback, browser):
        assert (await browser.get(f"{callback.address}?{query}")).status_code == 400
        assert (await browser.get(f"{callback.address}?code=one&state=right")).status_code == 200
        assert (await callback.wait()).code == "one"


async def test_another_method_path_or_host_is_refused():
    async with opened() as (callback, browser):
        right = f"{callback.address}?code=x&state=right"
        assert (await browser.post(right)).status_code == 400
        assert (await browser.get(right.replace("/callback", "/other"))).status_code == 400
        assert (await browser.get(right, headers={"host": "evil.example"})).status_code == 400
        assert (await browser.get(right)).status_code == 200


async def test_no_state_is_right_before_a_link_was_shown():
    async with open_callback(0) as callback, httpx2.AsyncClient(timeout=60) as browser:
        assert (await browser.get(f"{callback.address}?code=x&state=")).status_code == 400


async def test_a_flood_keeps_nobody_out():
    async with opened() as (callback, browser):
        idle: list[socket.socket] = []
        for number in range(400):
            with suppress(OSError):
                idle.append(socket.create_connection(("127.0.0.1", callback.port), 1))
                idle[-1].sendall(b"GET /callback?code=x&state=wrong HTTP/1.1\r\n" if number % 2 else b"")
            await anyio.lowlevel.checkpoint()

        async def guess(number: int) -> None:
            with suppress(httpx2.HTTPError):
                assert (await browser.get(f"{callback.address}?code=x&state={number}")).status_code == 400

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(guess, number)
        assert (await browser.get(f"{callback.address}?code=one&state=right")).status_code == 200
        assert (await callback.wait()).code == "one"
        for each in idle:
            each.close()


async def test_nobody_waits_longer_than_five_minutes(monkeypatch: pytest.MonkeyPatch):
    assert module._ANSWER_SECONDS == 300  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.05)
    async with opened() as (callback, _):
        with pytest.raises(ServerError, match="Nobody logged in within"):
            await callback.wait()


async def test_another_port_is_used_where_one_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with open_callback(taken.getsockname()[1]) as callback:
            assert callback.port != taken.getsockname()[1]
    with socket.create_server(("127.0.0.1", callback.port)):
        pass  # it is closed
