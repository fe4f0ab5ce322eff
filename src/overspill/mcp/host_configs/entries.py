"""One server's entry in a client's file: whether it can run through the proxy, and the edits for that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from overspill.mcp.host_configs.own_entries import serves_outputs
from overspill.mcp.host_configs.proxied import TYPE_VARIABLE, URL_VARIABLE, header_variables, recognize
from overspill.text import jsonc
from overspill.text.humanize import suggest
from overspill.text.jsonc import Edit, Node
from overspill.text.names import HEADER_NAME

ALREADY_WRAPPED = "it already runs through Overspill"
OWN_SERVER = "it is Overspill itself"
_STREAMABLE = {"http", "streamablehttp"}
_SIGN_IN = {"auth", "headersHelper", "oauth"}
_COMMAND_KEYS = {"args", "command", "env"}
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_MAX_PLAIN_SEGMENT = 19


class Refusal(Struct, frozen=True):
    """Why an entry is not wrapped. With `unless_named` it might work, so `--server NAME` wraps it."""

    reason: str
    unless_named: bool = False


def find_refusal(name: str, entry: Node) -> Refusal | None:
    if entry.kind != "object":
        return Refusal("it is not an object")
    for part in (entry, entry.get("headers")):
        if part and (twice := part.duplicate_key):
            return Refusal(f"it has the key {twice!r} twice")
    if recognize(name, entry):
        return Refusal(ALREADY_WRAPPED)
    if serves_outputs(name, entry):
        return Refusal(OWN_SERVER)
    value: dict[str, Any] = entry.value
    return _refuse_url(value) if "url" in value else _refuse_stdio(value)


def wrap_entry(name: str, entry: Node, launch: Sequence[str]) -> list[Edit]:
    """The edits that wrap an entry. `launch` is the command that starts Overspill."""
    program, *words = launch
    words += ["proxy", "--name", name]
    return _wrap_url(entry, program, words) if entry.get("url") else _wrap_stdio(entry, program, words)


def may_hold_secret(url: str) -> bool:
    """Whether a URL may hold a key, which every user of the machine could read on a command line."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    long = any(len(segment) > _MAX_PLAIN_SEGMENT for segment in parts.path.split("/"))
    return long or "$" in url or "@" in parts.netloc or bool(parts.query or parts.fragment)


def speaks_sse(value: Mapping[str, Any]) -> bool:
    return "sse" in (value.get("type"), value.get("transport")) or str(value.get("url", "")).rstrip("/").endswith("/sse")


def _refuse_stdio(value: Mapping[str, Any]) -> Refusal | None:
    if not isinstance(value.get("command"), str):
        unknown = [key for key in value if key not in (*_COMMAND_KEYS, "headers", "type")]
        hint = suggest(value, ("command", "url")) or (f" (its keys: {', '.join(unknown)})" if unknown else "")
        return Refusal(f"it has neither a command nor a url{hint}")
    if value.get("type", "stdio") != "stdio":
        return _refuse_type(value)
    if not _is_string_list(value.get("args", [])):
        return Refusal("its args are not a list of strings")
    if isinstance(dev := value.get("dev"), dict) and "debug" in dev:
        return Refusal("it runs in a debugger, which needs its own command")
    if value.get("sandboxEnabled"):
        return Refusal("it runs in a sandbox, where Overspill may not be able to store anything", unless_named=True)
    return None


def _refuse_url(value: Mapping[str, Any]) -> Refusal | None:
    url, headers = value["url"], value.get("headers", {})
    if not isinstance(url, str) or _COMMAND_KEYS & value.keys():
        return Refusal("it has keys for both a command and a url")
    kind = value.get("type", "http")
    if not isinstance(kind, str) or re.sub("[-_]", "", kind.lower()) not in _STREAMABLE:
        return _refuse_type(value)
    if speaks_sse(value):
        return Refusal("it speaks SSE, and the proxy speaks stdio and streamable HTTP")
    if _SIGN_IN & value.keys():
        return Refusal("your client signs in to it, and the proxy cannot")
    if not _is_header_map(headers):
        return Refusal("its headers are not strings with valid names")
    if not headers and not may_hold_secret(url) and urlsplit(url).hostname not in _LOCAL:
        return Refusal("it has no headers, so your client may sign in to it, and the proxy cannot", unless_named=True)
    return None


def _refuse_type(value: Mapping[str, Any]) -> Refusal:
    return Refusal(f"it is of type {value['type']!r}, and the proxy speaks stdio and streamable HTTP")


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))


def _is_header_map(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    headers = cast("dict[str, object]", value)
    return all(HEADER_NAME.fullmatch(name) and isinstance(text, str) for name, text in headers.items())


def _wrap_stdio(entry: Node, program: str, words: Sequence[str]) -> list[Edit]:
    command, args = entry.get("command"), entry.get("args")
    assert command
    parts = [*map(jsonc.quote, [*words, "--"]), command.raw]
    start = jsonc.replace(command, jsonc.quote(program))
    return [start, jsonc.insert(args, parts) if args else jsonc.append(entry, "command", f'"args": [{", ".join(parts)}]')]


def _wrap_url(entry: Node, program: str, words: Sequence[str]) -> list[Edit]:
    """`url` becomes `command` and `args`. `headers` becomes `env`, which keeps values, comments and order."""
    url, headers, kind = entry.get("url"), entry.get("headers"), entry.get("type")
    assert url
    hidden = may_hold_secret(url.value)
    names = headers.names if headers else []
    variables = header_variables(names)
    pairs = [word for name, variable in zip(names, variables, strict=True) for word in ("--header-env", f"{name}={variable}")]
    address = jsonc.quote(URL_VARIABLE) if hidden else url.raw
    args = [*map(jsonc.quote, [*words, *pairs, "--url-env" if hidden else "--url"]), address]
    edits = [
        jsonc.replace(entry.key("url"), '"command"'),
        jsonc.replace(url, jsonc.quote(program)),
        jsonc.append(entry, "url", f'"args": [{", ".join(args)}]'),
    ]
    extra = [f'"{URL_VARIABLE}": {url.raw}'] if hidden else []
    if kind:
        edits.append(jsonc.replace(kind, '"stdio"'))
        extra += [f'"{TYPE_VARIABLE}": {kind.raw}'] if kind.value != "http" else []
    if headers and names:
        edits.append(jsonc.replace(entry.key("headers"), '"env"'))
        edits += [jsonc.replace(key, jsonc.quote(variable)) for key, variable in zip(headers.keys, variables, strict=True)]
        edits += [jsonc.insert(headers, extra)] if extra else []
    elif extra:
        edits.append(jsonc.append(entry, "url", f'"env": {{{", ".join(extra)}}}'))
    return edits
