"""Recognize an entry that runs `overspill proxy`, and read its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import cast

from msgspec import Struct

from overspill.text.jsonc import Node

HEADER_VARIABLE = "OVERSPILL_HEADER_"
URL_VARIABLE = "OVERSPILL_URL"
TYPE_VARIABLE = "OVERSPILL_TYPE"
"""The original spelling of the type, if it was not `http`. Only `unwrap` reads it."""


_OPTIONS_WITH_VALUE = {"--name", "--url", "--url-env", "--header-env"}


class ProxyArguments(Struct, frozen=True):
    """The arguments of `overspill proxy`. `launch` is the command that starts Overspill."""

    launch: tuple[str, ...]
    command_at: int | None = None
    """Index of the server's own command in `args`."""
    url_at: int | None = None
    url_variable: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Pairs of a header and the variable that holds its value."""
    has_other_options: bool = False
    """Whether it has options that no original entry could express."""


def recognize(name: str, entry: Node) -> ProxyArguments | None:
    command, args = entry.get("command"), entry.get("args")
    if not command or not args or command.kind != "string" or args.kind != "array":
        return None
    words = [command.value, *args.value]
    if not all(isinstance(word, str) for word in words):
        return None
    at = _find_proxy(name, cast("list[str]", words))
    return None if at is None else _parse_arguments(tuple(words[:at]), cast("list[str]", words[at + 1 :]), at)


def header_variables(names: Sequence[str]) -> list[str]:
    """A different variable for each header."""
    found: list[str] = []
    for name in names:
        plain = HEADER_VARIABLE + "".join(char if char.isalnum() else "_" for char in name.upper())
        numbered = (f"{plain}_{count}" for count in range(2, len(names) + 2))
        found.append(next(variable for variable in (plain, *numbered) if variable not in found))
    return found


def _find_proxy(name: str, words: Sequence[str]) -> int | None:
    """Index of `proxy`, by the name of the program or by the arguments that `wrap --command` writes."""
    for at, word in enumerate(words[1:], 1):
        ours = PurePath(words[at - 1].replace("\\", "/")).name.removesuffix(".exe") == "overspill"
        if word == "proxy" and (ours or words[at + 1 : at + 3] == ["--name", name]):
            return at
    return None


def _parse_arguments(launch: tuple[str, ...], words: list[str], offset: int) -> ProxyArguments:
    """`offset` is the index of the first word in `args`."""
    url_at, url_variable, headers, strange = None, "", list[tuple[str, str]](), False
    at = 0
    while at < len(words) and words[at] != "--":
        option, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        if option == "--url":
            url_at = offset + at + 1
        elif option == "--url-env":
            url_variable = value
        elif option == "--header-env":
            header, _, variable = value.partition("=")
            headers.append((header, variable))
        elif option.startswith(("--header", "--url", "--config")):
            strange = True
        at += 2 if option in _OPTIONS_WITH_VALUE else 1
    command_at = offset + at + 1 if at + 1 < len(words) else None
    return ProxyArguments(launch, command_at, url_at, url_variable, tuple(headers), strange)
