"""How an entry that runs `overspill proxy` is written, and how it is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import cast

from msgspec import Struct

from overspill.text.jsonc import Node

HEADER_VARIABLE = "OVERSPILL_HEADER_"
URL_VARIABLE = "OVERSPILL_URL"
TYPE_VARIABLE = "OVERSPILL_TYPE"
"""Read by nobody but `unwrap`: how the original entry spelled its type, where that was not plain `http`."""


_OPTIONS_WITH_VALUE = {"--name", "--url", "--url-env", "--header-env"}


class ProxyArguments(Struct, frozen=True):
    """What the arguments of `overspill proxy` say. `launch` are the words that start Overspill."""

    launch: tuple[str, ...]
    command_at: int | None = None
    """Where in `args` the server's own command stands."""
    url_at: int | None = None
    url_variable: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Names of headers and of the variables that hold them."""
    has_other_options: bool = False
    """Has options whose meaning an original entry could not have."""


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
    """A variable for each header, no two the same."""
    found: list[str] = []
    for name in names:
        plain = HEADER_VARIABLE + "".join(char if char.isalnum() else "_" for char in name.upper())
        numbered = (f"{plain}_{count}" for count in range(2, len(names) + 2))
        found.append(next(variable for variable in (plain, *numbered) if variable not in found))
    return found


def _find_proxy(name: str, words: Sequence[str]) -> int | None:
    """By the name of the program, or by what `wrap --command` writes whatever the program is called."""
    for at, word in enumerate(words[1:], 1):
        ours = PurePath(words[at - 1].replace("\\", "/")).name.removesuffix(".exe") == "overspill"
        if word == "proxy" and (ours or words[at + 1 : at + 3] == ["--name", name]):
            return at
    return None


def _parse_arguments(launch: tuple[str, ...], words: list[str], offset: int) -> ProxyArguments:
    """`offset` is where in `args` the first of the words stands."""
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
