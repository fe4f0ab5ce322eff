"""Answer a client's handshake as the server behind the proxy would, plus what the proxy adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from overspill.errors import ServerError
from overspill.mcp.client.connection import ClientIdentity, Raw, ServerConnection, as_mapping
from overspill.mcp.proxy.tasks import drop_tasks
from overspill.text.humanize import one_line
from overspill.wording import framing

_ALL = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"listChanged": True}}


def initialize_result(params: Mapping[str, Any], connections: Mapping[str, ServerConnection | ServerError]) -> Raw:
    requested = params.get("protocolVersion")
    version = requested if requested in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
    text = instructions(connections)
    return {
        "protocolVersion": version,
        "capabilities": capabilities(connections),
        "serverInfo": info(connections),
        **({"instructions": text} if text is not None else {}),
    }


def discover_result(connections: Mapping[str, ServerConnection | ServerError]) -> Raw:
    text = instructions(connections)
    return {
        "resultType": "complete",
        "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
        "capabilities": capabilities(connections),
        "ttlMs": 0,
        "cacheScope": "private",
        **({"instructions": text} if text is not None else {}),
        "_meta": {mcp_types.SERVER_INFO_META_KEY: info(connections)},
    }


def info(connections: Mapping[str, ServerConnection | ServerError]) -> Raw:
    """The server's own info; the proxy's if there are several servers."""
    up = [connection for connection in connections.values() if isinstance(connection, ServerConnection)]
    if len(connections) == 1 and up:
        return up[0].handshake.info
    return ClientIdentity().info


def instructions(connections: Mapping[str, ServerConnection | ServerError]) -> str | None:
    """One server's instructions unchanged; several in named blocks that they cannot close. Says why a server is missing."""
    parts: list[str] = []
    for name, connection in connections.items():
        if isinstance(connection, ServerError):
            parts.append(f"The server {one_line(name)} is not available yet: {connection}")
        elif (text := connection.handshake.instructions) is not None:
            parts.append(text if len(connections) == 1 else framing.block(f"instructions of the server {one_line(name)}", text))
    return "\n\n".join(parts) if parts else None


def capabilities(connections: Mapping[str, ServerConnection | ServerError]) -> Raw:
    """Everything that any server has except tasks, plus tools whose list changes and outputs as resources.

    A server that is not up yet may have anything.
    """
    merged: Raw = {}
    for connection in connections.values():
        theirs = _ALL if isinstance(connection, ServerError) else drop_tasks(connection.handshake.capabilities)
        for name, value in theirs.items():
            known = merged.get(name)
            merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    merged["tools"] = {**as_mapping(merged.get("tools")), "listChanged": True}
    merged["resources"] = as_mapping(merged.get("resources"))
    return merged
