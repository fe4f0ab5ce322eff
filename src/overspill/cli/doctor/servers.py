"""The servers of a client's file: which of them can be looked at, and how each is doing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
from msgspec import Struct

from overspill.cli.doctor.findings import Finding
from overspill.errors import SettingsError
from overspill.mcp.client import ServerConfig, server_configs
from overspill.mcp.client.probe import Probe, probe
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.entries import speaks_sse
from overspill.mcp.host_configs.originals import unwrap_entry
from overspill.mcp.host_configs.proxied import recognize
from overspill.mcp.host_configs.rewriting import Server
from overspill.text import humanize, jsonc

_ASKED_FOR = re.compile(r"\$\{(?:input|command):([^}]*+)(\}|\Z)")
_AT_ONCE = 8
_BY_HAND = "Start its command in a shell and see what it says."
_REMOTE = "Check its address and its headers, and whether it wants you to sign in."


class ServerReport(Struct, frozen=True):
    """What was found, and the server's own answers where there are any."""

    finding: Finding
    probe: Probe | None = None


class Variables(dict[str, str]):
    """An environment for `${NAME}`. What it does not have stays as it is written, and is remembered."""

    def __init__(self, known: Mapping[str, str]) -> None:
        super().__init__(known)
        self.missing: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        value = super().get(key, default)
        if value is None:
            self.missing.append(key)
        return f"${{{key}}}" if value is None else value


async def examine(
    servers: Sequence[Server],
    environ: Mapping[str, str],
    *,
    name: str,
    folder: Path,
    expands: bool,
    within: float,
    model: str | None,
) -> list[ServerReport]:
    """Side by side, in their order. `name` is what errors call their file. Servers of other projects than `folder` are left out;
    `expands`: whether the client fills in `${…}`."""
    looks: dict[int, ServerReport] = {}
    places = anyio.Semaphore(_AT_ONCE)
    variables = {**environ, "workspaceFolder": str(folder), "workspaceFolderBasename": folder.name}

    async def one(at: int, server: Server) -> None:
        async with places:
            looks[at] = await _look(server, name, environ, Variables(variables) if expands else None, within, model)

    mine = [server for server in servers if server.project in ("", str(folder))]
    async with anyio.create_task_group() as group:
        for at, server in enumerate(mine):
            group.start_soon(one, at, server)
    return [looks[at] for at in range(len(mine))]


async def _look(
    server: Server, name: str, environ: Mapping[str, str], variables: Variables | None, within: float, model: str | None
) -> ServerReport:
    ready = _ready(server, name, environ, variables)
    if isinstance(ready, Finding):
        return ServerReport(ready)
    seen = await probe(ready, environ, within, model)
    if seen.problem:
        missing = [f"${{{name}}} is not set in this shell." for name in dict.fromkeys(variables.missing)] if variables else []
        return ServerReport(
            Finding(server.name, "wrong", seen.problem, " ".join([*missing, _REMOTE if ready.url else _BY_HAND])), seen
        )
    software = humanize.one_line(seen.software) or "A server without a name"
    text = (
        f"{software} answers after {seen.seconds:.1f} s, in protocol {seen.protocol}. "
        f"{humanize.count_noun(len(seen.tools), 'tool')}: {seen.bytes:,} bytes of schema, {seen.tokens:,} tokens."
        f"{' It runs through Overspill.' if _behind(server)[0] else ''}"
    )
    return ServerReport(Finding(server.name, "ok", text), seen)


def _ready(server: Server, name: str, environ: Mapping[str, str], variables: Variables | None) -> ServerConfig | Finding:
    if (asked := _ASKED_FOR.search(server.entry.raw)) and asked[2]:
        return Finding(server.name, "note", f"Not looked at: only the client can ask for {asked[1]!r}.")
    launch, value = _behind(server)
    if launch and not shutil.which(launch, path=environ.get("PATH")):
        advice = "Make its entry anew: overspill unwrap, then overspill wrap, with the same file."
        return Finding(server.name, "wrong", f"It is to run through Overspill, but there is no {launch}.", advice)
    if isinstance(value, dict) and speaks_sse(cast("dict[str, Any]", value)):
        return Finding(server.name, "note", "Not looked at: it speaks SSE, and Overspill does not.")
    try:
        configs = server_configs({server.name: value}, f"in {name}", variables)
    except SettingsError as problem:
        return Finding(server.name, "wrong", str(problem), "Correct its entry.")
    return configs.get(server.name) or Finding(server.name, "note", "Not looked at: it is disabled.")


def _behind(server: Server) -> tuple[str, Any]:
    """What starts Overspill, if the server runs through it, and the entry of the server itself: the proxy would answer for one
    that does not work."""
    found = recognize(server.name, server.entry) if server.entry.kind == "object" else None
    edits = unwrap_entry(server.entry, found) if found else None
    if not found or edits is None:
        return "", server.entry.value
    return found.launch[0], jsonc.scan(rewriting.edit_entry(server.entry, edits), server.name).value
