"""Names of tools, servers and sources.

A server's tool has two names: its own, for rules and records, and one with the server's name in front, for the model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import chain, count
from typing import Any

from overspill.text.humanize import one_line
from overspill.text.regex import regex

_SEPARATOR = "__"
_NOT_IN_NAMES = regex(r"[^A-Za-z0-9_-]")
HEADER_NAME = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A valid name of an HTTP header."""
_SOURCE_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "uri", "url", "directory", "dir")
"""Arguments that identify the source of an output."""
_MAX_TOOL_NAME_CHARS = 64  # what every provider accepts


def qualify_name(tool: str, server: str) -> str:
    return _usable(f"{server}{_SEPARATOR}{tool}")[:_MAX_TOOL_NAME_CHARS]


def assign_prefixes(servers: Collection[str]) -> dict[str, str]:
    """A unique prefix for the tools of each server. A valid server name is used unchanged."""
    found, taken = dict[str, str](), set(servers)
    for server in servers:
        plain = _usable(server)
        names = chain([plain], (f"{plain}_{number}" for number in count(2)))
        name = next(each for each in names if each == server or each not in taken)
        taken.add(name)
        found[server] = name + _SEPARATOR
    return found


def own_name(name: str, server: str) -> str:
    """The server's own name for the tool: the name without the server's prefix, if it has one."""
    if not server or _SEPARATOR not in name:
        return name
    prefix = _usable(f"{server}{_SEPARATOR}")
    return name[len(prefix) :] or name if _usable(name).startswith(prefix) else name


def describe_source(tool: str, args: Mapping[str, Any]) -> str:
    """`read_file: large.txt`. Shows only the last part of a path or address, because the rest may be private."""
    for name in _SOURCE_ARGUMENTS:
        value = args.get(name)
        if isinstance(value, str) and (place := re.split(r"[?#]", value)[0].rstrip("/\\")):
            last = re.split(r"[/\\]", place)[-1]
            return one_line(f"{tool}: {last}")
    return one_line(tool)


def _usable(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)
