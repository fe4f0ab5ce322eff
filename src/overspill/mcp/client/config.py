"""How to reach servers: in the form that MCP clients share, `{"mcpServers": {"name": {"command": …} | {"url": …}}}`.

Does not need the MCP SDK, so the processes of servers can start while it is imported.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, cast
from urllib.parse import urlsplit

import anyio
from anyio.abc import Process
from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from overspill.errors import ServerError, SettingsError
from overspill.mcp.client.own_files import without_session
from overspill.mcp.host_configs.files import MAX_BYTES, TOO_LARGE
from overspill.settings.files import parse_yaml, read_text
from overspill.settings.keys import LoginSettings
from overspill.text import jsonc
from overspill.text.humanize import escape_line, suggest
from overspill.text.lenient_json import loads
from overspill.text.names import HEADER_NAME
from overspill.text.regex import Match, regex

_HTTP_TYPES = {"http", "streamable-http", "streamableHttp", "streamable_http"}
_VARIABLE = regex(r"\$\{(?:(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*+))?|input:([^}]*+))(\}|\Z)")
_Minutes: TypeAlias = Annotated[float, Meta(ge=0, le=sys.float_info.max)]


class ServerConfig(Struct, frozen=True):
    """How to reach one server: a command to start, or a URL. Values may be secrets, so `repr` shows only the name."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    tools: tuple[str, ...] | None = None
    """The names of the only tools to use; None allows all."""
    idle_minutes: float | None = None
    """Its process is stopped after this long without a request, and started again by the next one. 0: never. None: only if its
    protocol keeps no session, because then a new process is as good as the old one."""
    share: bool = False
    """Whether one process serves all conversations of a hub, even if its protocol keeps a session."""
    login: LoginSettings = LoginSettings()
    login_owner: str = ""
    """Whose login it uses: a client over HTTP, as `identify_token` names it; empty for the user."""
    early: list[Process] = []
    """Its process, if it was started before anything could talk to it. The first start of the server takes it from this list."""

    def __repr__(self) -> str:
        return f"ServerConfig({self.name!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name)]

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def find_problem(self, environ: Mapping[str, str]) -> str:
        """Return why the server cannot start in this environment, if that is clear without trying; else empty."""
        named = os.path.join(self.cwd or "", self.command) if os.path.dirname(self.command) else self.command
        if not self.command or shutil.which(named, path={**environ, **self.env}.get("PATH")):
            return ""
        return (
            f"The server {self.name} cannot be started: no such command {self.command!r}. "
            "Check the spelling, or give its full path."
        )


def parse_host(url: str) -> str:
    """Return the URL's host name; empty if this is not an http or https address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.hostname or "" if url.isprintable() and " " not in url and parts.scheme in ("http", "https") else ""


def read_servers(path: Path, environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    """Read the servers in a client's file, under `mcpServers` or, as in VS Code, `servers`. JSON may have comments."""
    return find_servers(_parse(path), str(path), environ)


def find_servers(content: Any, path: str, environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    """The servers in the content of such a file. Errors call it `path`."""
    for section in ("mcpServers", "servers"):
        if isinstance(content, dict) and (found := cast("dict[str, Any]", content).get(section)) is not None:
            if not isinstance(found, dict):
                raise SettingsError(f"{section} in {path} must be a mapping of names to servers.")
            return server_configs(cast("dict[str, Any]", found), f"in {path}", environ)
    raise SettingsError(f"{path} has no mcpServers. Use the file in which your MCP client lists its servers.")


def server_configs(
    entries: Mapping[str, Any],
    where: str,
    environ: Mapping[str, str] | None = None,
    login: LoginSettings = LoginSettings(),  # noqa: B008  # frozen
) -> dict[str, ServerConfig]:
    """Make configurations of all enabled entries. `${NAME}` and `${NAME:-default}` are replaced by variables of `environ`."""
    configs: dict[str, ServerConfig] = {}
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise SettingsError(f"Server {name!r} {where} must be a mapping with a command or a url.")
        values = cast("dict[str, Any]", entry)
        if values.get("disabled") is not True and values.get("enabled") is not False:
            configs[str(name)] = replace(_Entry(str(name), where, values, environ).config(), login=login)
    return configs


def _parse(path: Path) -> Any:
    text = read_text(path, str(path), may_be_pipe=True, max_bytes=MAX_BYTES, too_large=TOO_LARGE)
    if path.suffix in (".yaml", ".yml"):
        return parse_yaml(text, str(path))
    try:
        return loads(text)  # fast: the file may hold a client's whole history
    except (ValueError, RecursionError):
        return jsonc.scan(text, str(path)).value


class _Entry:
    def __init__(self, name: str, where: str, values: Mapping[str, Any], environ: Mapping[str, str] | None) -> None:
        self._name = name
        self._where = where
        self._values = values
        self._environ = environ

    def config(self) -> ServerConfig:
        command, url = self._string("command"), self._string("url") or self._string("serverUrl")
        if bool(command) == bool(url):
            guess = "" if command else suggest(self._values, ("command", "url"))
            raise self._error(f"needs either a command or a url{guess}")
        kind = self._string("type") or self._string("transport")
        if url and kind and kind not in _HTTP_TYPES:
            raise self._error(f"has the type {kind!r}. Overspill supports stdio and streamable HTTP servers")
        if url and not parse_host(url):
            raise self._error("has a bad url. Use http:// or https:// with a host, without spaces or control characters")
        if self._values.get("envFile"):
            raise self._error("has an envFile, which Overspill does not read. Move its variables to env")
        tools = self._strings("tools" if self._values.get("tools") is not None else "allowedTools")
        return ServerConfig(
            escape_line(self._name),
            command=command,
            args=self._strings("args") or (),
            env=self._string_map("env"),
            cwd=self._string("cwd") or None,
            url=url,
            headers=self._check_headers(),
            tools=None if tools is None or "*" in tools else tools,
            idle_minutes=self._read("idleMinutes", _Minutes | None, "a number of minutes, or 0 for never"),
            share=self._read("share", bool, "true or false", default=False),
        )

    def _read(self, key: str, kind: Any, wanted: str, default: object = None) -> Any:
        try:
            return convert(self._values.get(key, default), kind)
        except ValidationError:
            raise self._error(f"has a bad value: `{key}` must be {wanted}") from None

    def _string(self, key: str) -> str:
        return self._expand(self._read(key, str | None, f"a string, not {type(self._values.get(key)).__name__}") or "")

    def _check_headers(self) -> dict[str, str]:
        headers = {name: value.strip() for name, value in self._string_map("headers").items()}
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or not value.isascii() or not value.replace("\t", " ").isprintable():
                raise self._error(f"has a bad header {name!r}: it contains characters that are not allowed in a header")
        return headers

    def _strings(self, key: str) -> tuple[str, ...] | None:
        value = self._read(key, list[str] | None, "a list of strings")
        return None if value is None else tuple(map(self._expand, value))

    def _string_map(self, key: str) -> dict[str, str]:
        value: Any = self._values.get(key) or {}
        if not isinstance(value, dict):
            raise self._error(f"has a bad value: `{key}` must be a mapping")
        pairs = cast("dict[str, Any]", value)
        if not all(isinstance(each, str | int | float) for each in pairs.values()):
            raise self._error(f"has a bad value: every value in `{key}` must be a string")
        texts = {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in pairs.items()}
        return {str(name): self._expand(text) for name, text in texts.items()}

    def _expand(self, text: str) -> str:
        return text if self._environ is None else _VARIABLE.sub(self._replace_variable, text)

    def _replace_variable(self, found: Match[str]) -> str:
        assert self._environ is not None
        name, default, input_id, closed = found.groups()
        if not closed:  # the match reaches the end of the text, so no part of it is scanned twice
            return found[0]
        if input_id is not None:
            raise self._error(
                f"uses ${{input:{input_id}}}, which only your client can ask you for. Use an environment variable instead"
            )
        value = cast("str | None", self._environ.get(name, default))
        if value is None:
            raise self._error(f"uses ${{{name}}}, but that variable is not set")
        return value

    def _error(self, what: str) -> SettingsError:
        return SettingsError(f"Server {self._name!r} {self._where} {what}.")


async def start_early(servers: Mapping[str, ServerConfig], environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    """Start every server that is a command. A server that fails is started again when it is needed, and reported then."""
    early = dict(servers)
    for name, config in servers.items():
        if config.command:
            try:
                early[name] = replace(config, early=[await open_process(config, {**environ, **config.env})])
            except ServerError:
                continue
    return early


async def open_process(config: ServerConfig, environ: Mapping[str, str]) -> Process:
    """Start a server in its own process group, with exactly the environment `environ`; a shared one belongs to no session,
    so it gets no variables of one. Raises ServerError if that fails."""
    environ = without_session(environ) if config.share else environ
    try:
        return await anyio.open_process([config.command, *config.args], env=environ, cwd=config.cwd, start_new_session=True)
    except ValueError as problem:
        why = str(problem)
    except OSError as problem:
        folder = config.cwd is not None and problem.filename == config.cwd
        if isinstance(problem, FileNotFoundError):
            why = f"no such folder {config.cwd!r}" if folder else f"no such command {config.command!r}"
        else:
            why = f"{problem.strerror}: {config.cwd if folder else config.command!r}"
    raise ServerError(f"The server {config.name} cannot be started: {why}. Check its command and its folder.")
