"""A server's tool has two names: its own, for rules and records, and one behind the server's, by which a model calls it."""

from __future__ import annotations

import re

_SEPARATOR = "__"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64  # characters that every provider takes in a tool's name


def offered_name(tool: str, server: str) -> str:
    return _usable(f"{server}{_SEPARATOR}{tool}")[:_LONGEST]


def own_name(name: str, server: str) -> str:
    """What the server itself calls the tool; a name without the server's in front is that already."""
    if not server or _SEPARATOR not in name:
        return name
    prefix = _usable(f"{server}{_SEPARATOR}")
    return name[len(prefix) :] or name if _usable(name).startswith(prefix) else name


def _usable(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)
