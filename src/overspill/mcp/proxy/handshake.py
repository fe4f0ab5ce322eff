"""How the proxy introduces itself: as the server it stands for, with what it adds."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import mcp_types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from overspill.errors import ServerError
from overspill.mcp.client import Link
from overspill.mcp.client.connection import Raw, mapping
from overspill.text.humanize import one_line
from overspill.wording import framing

_ALL = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"listChanged": True}}


def initialize_result(params: Mapping[str, Any], links: Mapping[str, Link | ServerError]) -> Raw:
    requested = params.get("protocolVersion")
    version = requested if requested in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
    said = instructions(links)
    return {
        "protocolVersion": version,
        "capabilities": capabilities(links),
        "serverInfo": info(links),
        **({"instructions": said} if said is not None else {}),
    }


def discover_result(links: Mapping[str, Link | ServerError]) -> Raw:
    said = instructions(links)
    return {
        "resultType": "complete",
        "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
        "capabilities": capabilities(links),
        "ttlMs": 0,
        "cacheScope": "private",
        **({"instructions": said} if said is not None else {}),
        "_meta": {mcp_types.SERVER_INFO_META_KEY: info(links)},
    }


def info(links: Mapping[str, Link | ServerError]) -> Raw:
    """The one server's own; of several, ours."""
    up = [link for link in links.values() if isinstance(link, Link)]
    if len(links) == 1 and up:
        return up[0].greeting.info
    return {"name": "overspill", "version": metadata.version("overspill")}


def instructions(links: Mapping[str, Link | ServerError]) -> str | None:
    """As the server gave them; of several, each in a block with its name that it cannot end; and why one is missing."""
    parts: list[str] = []
    for name, link in links.items():
        if isinstance(link, ServerError):
            parts.append(f"The server {one_line(name)} is not there yet: {link}")
        elif (said := link.greeting.instructions) is not None:
            parts.append(said if len(links) == 1 else framing.block(f"instructions of the server {one_line(name)}", said))
    return "\n\n".join(parts) if parts else None


def capabilities(links: Mapping[str, Link | ServerError]) -> Raw:
    """All that any server has, and what we add: tools whose list changes, and kept outputs as resources. A server that is not
    there yet may bring anything."""
    merged: Raw = {}
    for link in links.values():
        theirs = _ALL if isinstance(link, ServerError) else link.greeting.capabilities
        for name, value in theirs.items():
            known = merged.get(name)
            merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    merged["tools"] = {**mapping(merged.get("tools")), "listChanged": True}
    merged["resources"] = mapping(merged.get("resources"))
    return merged
