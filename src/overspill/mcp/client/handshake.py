"""Start a session with a server: with `initialize`, or with `server/discover` in the stateless protocol."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from importlib import metadata
from typing import Any, TypeAlias, cast

import mcp_types
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field

from overspill.errors import ServerError
from overspill.mcp.client.framing import Raw
from overspill.text.humanize import quote_line

Ask: TypeAlias = Callable[[str, Raw, CallOptions], Awaitable[Raw]]
"""Sends a request. Raises MCPError for a refusal, after which another handshake may work, and ServerError if none will."""

TASKS = "io.modelcontextprotocol/tasks"
"""The extension for tasks. Overspill follows tasks itself, whether or not the client knows them."""
_DISCOVER_SECONDS = 10.0  # an old server may take this long to refuse `server/discover`


class ClientIdentity(Struct, frozen=True):
    """The name, version and capabilities we send to the server. `is_modern` decides which handshake comes first."""

    info: Raw = field(default_factory=lambda: {"name": "overspill", "version": metadata.version("overspill")})
    capabilities: Raw = {}
    is_modern: bool = False


class Dated(Struct, frozen=True, kw_only=True):
    """An answer of a server, with what it said at the unix time `t` about how long clients may keep it."""

    freshness: Raw = {}
    t: float = 0.0

    @property
    def left(self) -> Raw:
        """How long clients may still keep it."""
        age = max(0, int((time.time() - self.t) * 1000))
        return merge_freshness([{**self.freshness, "ttlMs": max(0, read_ttl(self.freshness) - age)}]) if self.freshness else {}


class Handshake(Dated, frozen=True):
    version: str
    capabilities: Raw
    info: Raw
    instructions: str | None

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS


def merge_freshness(answers: Iterable[Raw]) -> Raw:
    """Combine how long, and by whom, each answer may be kept into the strictest of all. Empty if an answer does not say."""
    found = list(answers)
    if not found or not all("ttlMs" in each for each in found):
        return {}
    scopes = {"public" if each.get("cacheScope") == "public" else "private" for each in found}
    return {"ttlMs": min(map(read_ttl, found)), "cacheScope": "public" if scopes == {"public"} else "private"}


def read_ttl(answer: Raw) -> int:
    value = answer.get("ttlMs")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


async def shake_hands(ask: Ask, client: ClientIdentity, name: str) -> Handshake:
    refusals: list[MCPError] = []
    for attempt in (discover, _initialize, discover) if client.is_modern else (_initialize, discover):
        # The third try is for a slow server that answered the first handshake too late, and now accepts no other.
        if len(refusals) < 2 or refusals[-1].code == mcp_types.UNSUPPORTED_PROTOCOL_VERSION:
            try:
                return await attempt(ask, client, name)
            except MCPError as refusal:
                refusals.append(refusal)
    why = "; ".join(dict.fromkeys(quote_line(each.message).rstrip(".") for each in refusals))
    raise ServerError(f"The server {name} refused to start a session: {why}.")


def add_identity(params: Raw, client: ClientIdentity, version: str) -> Raw:
    """Add the client's identity, as every request of the stateless protocol does, and that a call may become a task."""
    meta = {mcp_types.CLIENT_INFO_META_KEY: client.info, **as_mapping(params.get("_meta"))}
    able = as_mapping(meta.get(mcp_types.CLIENT_CAPABILITIES_META_KEY, client.capabilities))
    meta[mcp_types.CLIENT_CAPABILITIES_META_KEY] = {**able, "extensions": {**as_mapping(able.get("extensions")), TASKS: {}}}
    return {**params, "_meta": {**meta, mcp_types.PROTOCOL_VERSION_META_KEY: version}}


def as_mapping(value: Any) -> Raw:
    """The value if it is an object, else an empty one. Servers may send anything."""
    return cast("Raw", value) if isinstance(value, dict) else {}


async def discover(ask: Ask, client: ClientIdentity, name: str) -> Handshake:
    version = MODERN_PROTOCOL_VERSIONS[-1]
    headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: "server/discover"}
    opts: CallOptions = {"timeout": _DISCOVER_SECONDS, "cancel_on_abandon": False, "headers": headers}
    found = await ask("server/discover", add_identity({}, client, version), opts)
    offered: Any = found.get("supportedVersions")
    mutual = [each for each in MODERN_PROTOCOL_VERSIONS if isinstance(offered, list) and each in offered]
    if not mutual:
        raise MCPError(mcp_types.UNSUPPORTED_PROTOCOL_VERSION, "no shared version of the stateless protocol")
    return _read_handshake(mutual[-1], found, as_mapping(found.get("_meta")).get(mcp_types.SERVER_INFO_META_KEY), name)


async def _initialize(ask: Ask, client: ClientIdentity, name: str) -> Handshake:
    params = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": client.capabilities, "clientInfo": client.info}
    found = await ask("initialize", params, {"cancel_on_abandon": False})
    version = found.get("protocolVersion")
    if not isinstance(version, str) or version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise MCPError(mcp_types.UNSUPPORTED_PROTOCOL_VERSION, f"Overspill does not support its version {version!r}")
    return _read_handshake(version, found, found.get("serverInfo"), name)


def _read_handshake(version: str, found: Raw, info: Any, name: str) -> Handshake:
    instructions = found.get("instructions")
    known_info = as_mapping(info) or {"name": name, "version": ""}
    words = instructions if isinstance(instructions, str) else None
    freshness = merge_freshness([found])
    now = time.time() if freshness else 0.0
    return Handshake(version, as_mapping(found.get("capabilities")), known_info, words, freshness=freshness, t=now)
