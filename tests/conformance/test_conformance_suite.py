"""The official conformance suite, run against a server directly and through `overspill proxy`."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from official import Node
from relay import relay
from running import TOKEN, Overspill, plain_environ, running
from suite import Found, Suite, findings, not_passed

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
# The proxy does not compare a tool's own headers with its arguments before it hands them on.
UNCHECKED = "http-custom-header-server-validation"


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
async def proxied_stdio(place: Path) -> AsyncGenerator[str]:
    door = str(place / "door")
    server = [sys.executable, str(SERVERS / "conformance_server.py"), "--doors", door]
    door_opener = [sys.executable, "-S", str(SERVERS / "stdio_door.py"), door]
    async with running(server, "ready", plain_environ()), proxied(place, "--", *door_opener) as address:
        yield address


async def every_way(node: Node, suite: Suite, place: Path) -> tuple[Found, Found, Found]:
    async with serving() as url:
        direct = await findings(node, suite, url, place / "direct")
        async with proxied(place, "--url", url) as address:
            http = await findings(node, suite, address, place / "http", direct)
    async with proxied_stdio(place) as address:
        stdio = await findings(node, suite, address, place / "stdio", direct)
    return direct, http, stdio


async def test_every_scenario_of_the_handshake_protocol_passes_directly_and_through_the_proxy(node: Node, tmp_path: Path) -> None:
    direct, http, stdio = await every_way(node, HANDSHAKE, tmp_path)
    assert len(direct) == 30
    assert not_passed(direct) == set()
    assert http == direct
    assert stdio == direct


async def test_every_scenario_of_the_stateless_protocol_ends_through_the_proxy_as_it_does_directly(
    node: Node, tmp_path: Path
) -> None:
    direct, http, stdio = await every_way(node, STATELESS, tmp_path)
    assert len(direct) == 50
    assert not_passed(direct) == TASKS
    differing = {
        way: {name for name in direct if found.get(name) != direct[name]} for way, found in (("http", http), ("stdio", stdio))
    }
    assert differing == {"http": {UNCHECKED}, "stdio": {UNCHECKED}}
