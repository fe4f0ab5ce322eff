"""Names that others prescribe. A server's tool has two: its own, for rules and records, and one behind the server's, by which a
model calls it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import chain, count
from typing import Any

from overspill.text.humanize import one_line

_SEPARATOR = "__"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What can be the name of an HTTP header."""
_SOURCE_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "uri", "url", "directory", "dir")
"""Arguments that say where an output comes from."""
_MAX_TOOL_NAME_CHARS = 64  # characters that every provider takes in a tool's name


def qualify_name(tool: str, server: str) -> str:
    return _usable(f"{server}{_SEPARATOR}{tool}")[:_MAX_TOOL_NAME_CHARS]


def assign_prefixes(servers: Collection[str]) -> dict[str, str]:
    """What stands before the tools of each, no two the same; a usable name stays as it is."""
    found, taken = dict[str, str](), set(servers)
    for server in servers:
        plain = _usable(server)
        names = chain([plain], (f"{plain}_{number}" for number in count(2)))
        name = next(each for each in names if each == server or each not in taken)
        taken.add(name)
        found[server] = name + _SEPARATOR
    return found


def own_name(name: str, server: str) -> str:
    """What the server itself calls the tool; a name without the server's in front is that already."""
    if not server or _SEPARATOR not in name:
        return name
    prefix = _usable(f"{server}{_SEPARATOR}")
    return name[len(prefix) :] or name if _usable(name).startswith(prefix) else name


def describe_source(tool: str, args: Mapping[str, Any]) -> str:
    """`read_file: large.txt`. Only the last part of a path or address is named: the rest of a call may be private."""
    for name in _SOURCE_ARGUMENTS:
        value = args.get(name)
        if isinstance(value, str) and (place := re.split(r"[?#]", value)[0].rstrip("/\\")):
            last = re.split(r"[/\\]", place)[-1]
            return one_line(f"{tool}: {last}")
    return one_line(tool)


def _usable(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)
