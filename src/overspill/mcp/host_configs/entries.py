"""One server's entry in a client's file: whether it can run through the proxy, the edits for that, and the edits that undo it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from overspill.mcp.host_configs.hub_clients import HubAddress
from overspill.mcp.host_configs.own_entries import is_overspill, serves_outputs
from overspill.text import jsonc
from overspill.text.humanize import suggest
from overspill.text.jsonc import Edit, Node
from overspill.text.names import HEADER_NAME

URL_VARIABLE = "OVERSPILL_URL"
TYPE_VARIABLE = "OVERSPILL_TYPE"
"""The original spelling of the type, if it was not `http`. Only `unwrap` reads it."""
SERVERS_VARIABLE = "OVERSPILL_SERVERS"
"""The entries that one entry for all servers holds."""
_OPTIONS_WITH_VALUE = {"--name", "--group", "--config-env", "--url", "--url-env", "--header-env", "--idle-minutes"}
ALREADY_WRAPPED = "it already runs through Overspill"
OWN_SERVER = "it is Overspill itself"
_COMMAND_KEYS = {"args", "command", "env"}
_MAX_PLAIN_SEGMENT = 19
_SANDBOXED = "it runs in a sandbox, where Overspill may not be able to store anything"


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
    group: str = ""
    """Whose retrieval tools another entry offers."""


def recognize(name: str, entry: Node) -> ProxyArguments | None:
    """Recognize our entry by the program's name before `proxy`, or by the arguments that `wrap --command` writes after it."""
    command, args = entry.get("command"), entry.get("args")
    if not command or not args or command.kind != "string" or args.kind != "array":
        return None
    words = [command.value, *args.value]
    if not all(isinstance(word, str) for word in words):
        return None
    for at, word in enumerate(words[1:], 1):
        written = words[at + 1 : at + 3] in (["--name", name], ["--config-env", SERVERS_VARIABLE])
        if word == "proxy" and (is_overspill(words[at - 1 : at]) or written):
            return _parse_arguments(tuple(words[:at]), words[at + 1 :], at)
    return None


def header_variables(names: Sequence[str]) -> list[str]:
    """Choose a different variable for each header."""
    found: list[str] = []
    for name in names:
        plain = "OVERSPILL_HEADER_" + "".join(char if char.isalnum() else "_" for char in name.upper())
        numbered = (f"{plain}_{count}" for count in range(2, len(names) + 2))
        found.append(next(variable for variable in (plain, *numbered) if variable not in found))
    return found


def _parse_arguments(launch: tuple[str, ...], words: list[str], offset: int) -> ProxyArguments:
    """`offset` is the index of the first word in `args`."""
    url_at, url_variable, headers, strange, group = None, "", list[tuple[str, str]](), False, ""
    at = 0
    while at < len(words) and words[at] != "--":
        option, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        if option == "--url":
            url_at = offset + at + 1
        elif option == "--url-env":
            url_variable = value
        elif option == "--group":
            group = value
        elif option == "--header-env":
            header, _, variable = value.partition("=")
            headers.append((header, variable))
        elif option.startswith(("--header", "--url", "--config")):
            strange = True
        at += 2 if option in _OPTIONS_WITH_VALUE else 1
    command_at = offset + at + 1 if at + 1 < len(words) else None
    return ProxyArguments(launch, command_at, url_at, url_variable, tuple(headers), strange, group)


def find_refusal(name: str, entry: Node, *, is_named: bool = True) -> str:
    """Return why an entry cannot be wrapped; empty if it can. `is_named`: `--server` names it."""
    if entry.kind != "object":
        return "it is not an object"
    for part in (entry, entry.get("headers")):
        if part and (twice := part.duplicate_key):
            return f"it has the key {twice!r} twice"
    if recognize(name, entry) or HubAddress.find(entry):
        return ALREADY_WRAPPED
    if serves_outputs(name, entry):
        return OWN_SERVER
    value: dict[str, Any] = entry.value
    idle: object = value.get("idleMinutes", 0)
    if type(idle) not in (int, float) or not 0 <= cast("float", idle) < math.inf:
        return "its idleMinutes is not a number of minutes, or 0 for never"
    if not isinstance(value.get("share", False), bool):
        return "its share is neither true nor false"
    reason = _refuse_url(value) if "url" in value else _refuse_stdio(value)
    if reason == _SANDBOXED:  # the user may try, because it might work
        return "" if is_named else f"{reason}; name it with --server to wrap it anyway"
    return reason


def wrap_entry(name: str, entry: Node, launch: Sequence[str], group: str = "") -> list[Edit]:
    """Return the edits that wrap an entry. `launch` starts Overspill. An entry with its own folder joins no group."""
    program, *words = launch
    words += ["proxy", "--name", name, *(["--group", group] if group and not entry.get("cwd") else [])]
    words += ["--share"] if (share := entry.get("share")) and share.value else []
    words += ["--idle-minutes", idle.raw] if (idle := entry.get("idleMinutes")) else []
    if entry.get("url"):
        return _wrap_url(entry, program, words)
    command, args = entry.get("command"), entry.get("args")
    assert command
    parts = [*map(jsonc.quote, [*words, "--"]), command.raw]
    start = jsonc.replace(command, jsonc.quote(program))
    return [start, jsonc.insert(args, parts) if args else jsonc.append(entry, "command", f'"args": [{", ".join(parts)}]')]


def regroup_entry(name: str, entry: Node, found: ProxyArguments, group: str) -> list[Edit]:
    """Return the edits after which a wrapped entry leaves the retrieval tools to its group or, without one, offers its own. Empty
    if nothing changes, or if the entry is not as `wrap` writes it."""
    args, undo, at = entry.get("args"), unwrap_entry(entry, found), len(found.launch) + 1
    if not args or undo is None or bool(group) == bool(found.group) or (group and entry.get("cwd")):
        return []
    original = jsonc.scan(edit_entry(entry, undo), name)
    if jsonc.scan(edit_entry(original, wrap_entry(name, original, found.launch, found.group)), name).value != entry.value:
        return []
    if found.group:
        return jsonc.remove(args, range(at + 1, at + 3))
    return [jsonc.replace(args.children[at], f'{args.children[at].raw}, "--group", {jsonc.quote(group)}')]


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


def _refuse_stdio(value: Mapping[str, Any]) -> str:
    if not isinstance(value.get("command"), str):
        unknown = [key for key in value if key not in (*_COMMAND_KEYS, "headers", "type")]
        hint = suggest(value, ("command", "url")) or (f" (its keys: {', '.join(unknown)})" if unknown else "")
        return f"it has neither a command nor a url{hint}"
    if value.get("type", "stdio") != "stdio":
        return _refuse_type(value)
    args = value.get("args", [])
    if not isinstance(args, list) or not all(isinstance(each, str) for each in cast("list[object]", args)):
        return "its args are not a list of strings"
    if isinstance(dev := value.get("dev"), dict) and "debug" in dev:
        return "it runs in a debugger, which needs its own command"
    return _SANDBOXED if value.get("sandboxEnabled") else ""


def _refuse_url(value: Mapping[str, Any]) -> str:
    url, headers = value["url"], value.get("headers", {})
    if _COMMAND_KEYS & value.keys():
        return "it has keys for both a command and a url"
    if not isinstance(url, str) or not url.lower().startswith(("http://", "https://", "$")):
        return "its url does not begin with http:// or https://"
    kind = value.get("type", "http")
    if not isinstance(kind, str) or re.sub("[-_]", "", kind.lower()) not in {"http", "streamablehttp"}:
        return _refuse_type(value)
    if speaks_sse(value):
        return "it speaks SSE, and the proxy speaks stdio and streamable HTTP"
    if {"auth", "headersHelper", "oauth"} & value.keys():
        return "it says how your client signs in, which the proxy cannot do; remove that to wrap it and log in with Overspill"
    are_valid = isinstance(headers, dict) and all(
        HEADER_NAME.fullmatch(name) and isinstance(text, str) for name, text in cast("dict[str, object]", headers).items()
    )
    return "" if are_valid else "its headers are not strings with valid names"


def may_need_login(value: Mapping[str, Any]) -> bool:
    """Whether a server may require a login: it is on another machine, and its entry has no credentials."""
    url = value.get("url")
    if not isinstance(url, str) or value.get("headers") or value.get("disabled") or may_hold_secret(url):
        return False
    return urlsplit(url).hostname not in {"localhost", "127.0.0.1", "::1"}


def _refuse_type(value: Mapping[str, Any]) -> str:
    return f"it is of type {value['type']!r}, and the proxy speaks stdio and streamable HTTP"


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


def unwrap_entry(entry: Node, found: ProxyArguments) -> list[Edit] | None:
    """Return the edits that undo wrapping and keep all comments; None if the entry does not hold enough to restore it."""
    command, args, env = entry.get("command"), entry.get("args"), entry.get("env")
    assert command
    assert args
    if found.command_at is not None:
        own = args.children[found.command_at].raw
        return [jsonc.replace(command, own), *jsonc.remove(args, range(found.command_at + 1))]
    if found.url_at is None:
        url = entry.get("env", found.url_variable)
    else:
        url = args.children[found.url_at] if found.url_at < len(args.children) else None
    if found.has_other_options or not url or not {variable for _, variable in found.headers} <= set(env.names if env else ()):
        return None
    edits = [jsonc.replace(entry.key("command"), '"url"'), jsonc.replace(command, url.raw)]
    if (kind := entry.get("type")) and kind.value == "stdio":
        spelled = entry.get("env", TYPE_VARIABLE)
        edits.append(jsonc.replace(kind, spelled.raw if spelled else '"http"'))
    return edits + _remove_args(entry, env, found)


def _remove_args(entry: Node, env: Node | None, found: ProxyArguments) -> list[Edit]:
    """Remove `args` and Overspill's variables. `env` becomes `headers` if it holds nothing else."""
    gone = [entry.names.index("args")]
    if not env:
        return jsonc.remove(entry, gone)
    own = [at for at, name in enumerate(env.names) if name in (found.url_variable, TYPE_VARIABLE)]
    headers = {variable: name for name, variable in found.headers}
    held = [at for at, name in enumerate(env.names) if name in headers]
    if held and len(held) == len(found.headers) == len(env.names) - len(own):
        names = [jsonc.replace(env.keys[at], jsonc.quote(headers[env.names[at]])) for at in held]
        return [*jsonc.remove(entry, gone), jsonc.replace(entry.key("env"), '"headers"'), *names, *jsonc.remove(env, own)]
    added: list[Edit] = []
    if held:
        members = [f"{jsonc.quote(name)}: {value.raw}" for name, variable in found.headers if (value := env.get(variable))]
        added.append(jsonc.append(entry, "command", f'"headers": {{{", ".join(members)}}}'))
    if own and len(own) == len(env.names):
        return added + jsonc.remove(entry, [*gone, entry.names.index("env")])
    return [*added, *jsonc.remove(entry, gone), *jsonc.remove(env, [*own, *held])]


def edit_entry(entry: Node, edits: Sequence[Edit]) -> str:
    """Apply edits of the file to the text of one entry."""
    moved = [Edit(edit.start - entry.start, edit.end - entry.start, edit.text) for edit in edits]
    return jsonc.apply_edits(entry.raw, moved)
