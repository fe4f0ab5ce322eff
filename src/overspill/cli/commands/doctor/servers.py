"""The servers in a client's file: which can be checked, and whether each works."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from overspill.cli.commands.doctor.checks import DoctorReport, Finding
from overspill.errors import SettingsError
from overspill.mcp.client.config import ServerConfig, server_configs
from overspill.mcp.client.login.keeper import check_login
from overspill.mcp.client.probe import probe
from overspill.mcp.host_configs.documents import ConfiguredServer
from overspill.mcp.host_configs.entries import edit_entry, recognize, speaks_sse, unwrap_entry
from overspill.settings.keys import LoginSettings
from overspill.text import humanize, jsonc
from overspill.text.regex import regex

_PROMPTED = regex(r"\$\{(?:input|command):([^}]*+)(\}|\Z)")
_CHECK_COMMAND = "Run its command in a shell and see what it prints."
_CHECK_URL = "Check its URL and headers, and whether it needs you to sign in."


class Variables(dict[str, str]):
    """An environment for `${NAME}`. Unknown names are left as written, and listed in `missing`."""

    def __init__(self, known: Mapping[str, str]) -> None:
        super().__init__(known)
        self.missing: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        value = super().get(key, default)
        if value is None:
            self.missing.append(key)
        return f"${{{key}}}" if value is None else value


class ServerChecks(Struct, frozen=True):
    """How to check the servers in a file, which errors call `name`."""

    name: str
    environ: Mapping[str, str]
    expands: bool
    """Whether the client fills in `${…}`."""
    within: float
    model: str | None
    login: LoginSettings

    async def run(self, servers: Sequence[ConfiguredServer]) -> list[DoctorReport]:
        """Check servers concurrently; the reports keep their order. Servers of projects other than this folder are left out."""
        folder, reports, slots = Path.cwd(), dict[int, DoctorReport](), anyio.Semaphore(8)
        known = {**self.environ, "workspaceFolder": str(folder), "workspaceFolderBasename": folder.name}

        async def check_one(index: int, server: ConfiguredServer) -> None:
            async with slots:
                reports[index] = await self._check(server, Variables(known) if self.expands else None)

        async with anyio.create_task_group() as group:
            for index, server in enumerate(servers):
                if server.project in ("", str(folder)):
                    group.start_soon(check_one, index, server)
        return [reports[index] for index in sorted(reports)]

    async def _check(self, server: ConfiguredServer, variables: Variables | None) -> DoctorReport:
        config = read_config(server, self.name, self.environ, variables)
        if isinstance(config, Finding):
            return DoctorReport(config)
        login, trouble = await check_login(config.url, self.environ)
        result = await probe(replace(config, login=self.login), self.environ, self.within, self.model)
        if result.problem:
            missing = [f"${{{name}}} is not set in this shell." for name in dict.fromkeys(variables.missing)] if variables else []
            advice = " ".join([*missing, _CHECK_URL if config.url else _CHECK_COMMAND])
            return DoctorReport(
                Finding(server.name, "wrong", " ".join(filter(None, (result.problem, login, trouble))), advice), result
            )
        software = humanize.one_line(result.software) or "A server without a name"
        size, cost = sum(tool.bytes for tool in result.tools), sum(tool.tokens for tool in result.tools)
        text = (
            f"{software} answered in {result.seconds:.1f} s with protocol {result.protocol}. "
            f"{humanize.count_noun(len(result.tools), 'tool')}: {size:,} bytes of schema, {cost:,} tokens."
            f"{' It runs through Overspill.' if _find_original(server)[0] else ''}"
        )
        if result.unusable:
            text = f"{text} It lists tools that cannot be used, and Overspill leaves them out: {result.unusable}."
        level = "wrong" if trouble else "note" if result.unusable else "ok"
        return DoctorReport(Finding(server.name, level, " ".join(filter(None, (text, login, trouble)))), result)


def read_config(
    server: ConfiguredServer, name: str, environ: Mapping[str, str], variables: Variables | None
) -> ServerConfig | Finding:
    if (prompted := _PROMPTED.search(server.entry.raw)) and prompted[2]:
        return Finding(server.name, "note", f"Not checked: only the client can ask you for {prompted[1]!r}.")
    launch, value = _find_original(server)
    if launch and not shutil.which(launch, path=environ.get("PATH")):
        advice = "Run overspill unwrap and then overspill wrap on the same file."
        return Finding(server.name, "wrong", f"It runs through Overspill, but {launch} does not exist.", advice)
    if isinstance(value, dict) and speaks_sse(cast("dict[str, Any]", value)):
        return Finding(server.name, "note", "Not checked: it speaks SSE, which Overspill does not support.")
    try:
        configs = server_configs({server.name: value}, f"in {name}", variables)
    except SettingsError as problem:
        return Finding(server.name, "wrong", str(problem), "Fix its entry.")
    return configs.get(server.name) or Finding(server.name, "note", "Not checked: it is disabled.")


def _find_original(server: ConfiguredServer) -> tuple[str, Any]:
    """Return the program that runs the server behind Overspill, or "", and the server's own entry: the proxy always answers."""
    found = recognize(server.name, server.entry)
    edits = unwrap_entry(server.entry, found) if found else None
    if not found or edits is None:
        return "", server.entry.value
    return found.launch[0], jsonc.scan(edit_entry(server.entry, edits), server.name).value
