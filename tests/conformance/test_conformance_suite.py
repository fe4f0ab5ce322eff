"""The official conformance suite, run against a server directly and through `overspill proxy`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from official import Node
from relay import relay
from running import TOKEN, Overspill, plain_environ, running
from suite import Found, Suite, differing, findings, not_passed

pytestmark = pytest.mark.slow

SERVERS = Path(__file__).parents[1] / "servers"
ADDRESS = r"http://\S+"
HANDSHAKE = Suite("@modelcontextprotocol/conformance")
STATELESS = Suite("conformance-next", ("--requirements", "2026-07-28"), ("--spec-version", "2026-07-28"))

# Extensions that the server does not have. The suite runs them too, and does not count them.
TASKS = {
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
}


@asynccontextmanager
async def serving() -> AsyncGenerator[str]:
    server = [sys.executable, str(SERVERS / "conformance_server.py"), "--http"]
    async with running(server, ADDRESS, plain_environ()) as url:
        yield url


@asynccontextmanager
async def proxied(place: Path, *server: str) -> AsyncGenerator[str]:
    """The address of a proxy over HTTP; the suite cannot send the token itself."""
    overspill = Overspill(place)
    command = overspill.proxy("--http", "127.0.0.1:0", *server)
    async with running(command, ADDRESS, overspill.environ) as url, relay(url, TOKEN) as address:
        yield address


@asynccontextmanager
async def over_http(url: str, place: Path) -> AsyncGenerator[str]:
    async with proxied(place, "--url", url) as address:
        yield address


@asynccontextmanager
async def over_stdio(_: str, place: Path) -> AsyncGenerator[str]:
    door = str(place / "door")
    server = [sys.executable, str(SERVERS / "conformance_server.py"), "--doors", door]
    starting = [sys.executable, "-S", str(SERVERS / "stdio_door.py"), door]
    async with running(server, "ready", plain_environ()), proxied(place, "--", *starting) as address:
        yield address


Way: TypeAlias = Callable[[str, Path], AbstractAsyncContextManager[str]]
BOTH_WAYS = pytest.mark.parametrize("way", [over_http, over_stdio])


async def twice(node: Node, suite: Suite, way: Way, place: Path) -> tuple[Found, Found]:
    """What the suite finds directly, and through a proxy that reaches the server this way."""
    async with serving() as url:
        direct = await findings(node, suite, url, place / "direct", lambda found: not_passed(found) - TASKS)
        async with way(url, place) as address:
            through = await findings(node, suite, address, place / "through", lambda found: differing(found, direct))
    return direct, through


@BOTH_WAYS
async def test_every_scenario_of_the_handshake_protocol_passes_through_the_proxy_too(
    node: Node, way: Way, tmp_path: Path
) -> None:
    direct, through = await twice(node, HANDSHAKE, way, tmp_path)
    assert len(direct) == 30
    assert not_passed(direct) == set()
    assert through == direct


@BOTH_WAYS
async def test_every_scenario_of_the_stateless_protocol_ends_the_same_with_the_proxy(
    node: Node, way: Way, tmp_path: Path
) -> None:
    direct, through = await twice(node, STATELESS, way, tmp_path)
    assert len(direct) == 50
    assert not_passed(direct) == TASKS
    assert {name: through[name] for name in through.keys() - TASKS} == {name: direct[name] for name in direct.keys() - TASKS}
    for name in TASKS:  # the proxy has this extension, whether or not the server does
        assert failed(through[name]) <= failed(direct[name])


def failed(checks: Counter[str]) -> set[str]:
    return {check for check in checks if check.endswith(" FAILURE")}
