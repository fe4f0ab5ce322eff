"""Which servers there are, in the form that MCP clients share: `{"mcpServers": {"name": {"command": …} | {"url": …}}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.settings.files import parse_yaml

_SECTIONS = ("mcpServers", "servers")
_REMOTE = {"http", "streamable-http", "streamableHttp", "streamable_http"}
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ServerConfig(Struct, frozen=True, repr_omit_defaults=True):
    """How to reach one server: a command to start, or a URL. Its values may be secrets, so `repr` names it and no more."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    tools: tuple[str, ...] | None = None
    """Only these of its tools are there; None: all."""

    def __repr__(self) -> str:
        return f"ServerConfig({self.name!r})"

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools


def read_servers(path: Path, environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    """From a client's own file; `mcpServers`, or `servers` as VS Code calls it."""
    content = _parsed(path)
    for section in _SECTIONS:
        if isinstance(content, dict) and isinstance(found := cast("dict[str, Any]", content).get(section), dict):
            return server_configs(cast("dict[str, Any]", found), f"in {path}", environ)
    raise SettingsError(f"{path} has no mcpServers. It is the file in which your MCP client lists its servers.")


def server_configs(entries: Mapping[str, Any], where: str, environ: Mapping[str, str] | None = None) -> dict[str, ServerConfig]:
    """Entries that are disabled are left out. `${NAME}` and `${NAME:-default}` are taken from `environ`."""
    configs: dict[str, ServerConfig] = {}
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise SettingsError(f"Server {name!r} {where} is not a mapping with a command or a url.")
        values = cast("dict[str, Any]", entry)
        if values.get("disabled") is not True:
            configs[name] = _Entry(name, where, values, environ).config()
    return configs


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text("utf-8-sig")
        return parse_yaml(text, str(path)) if path.suffix in (".yaml", ".yml") else json.loads(text)
    except OSError as problem:
        raise SettingsError(f"{path} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8. Save it as UTF-8.") from None
    except json.JSONDecodeError as problem:
        raise SettingsError(f"{path} is not usable JSON, line {problem.lineno}: {problem.msg}.") from None
    except RecursionError:
        raise SettingsError(f"{path} is nested too deeply.") from None


class _Entry:
    def __init__(self, name: str, where: str, values: Mapping[str, Any], environ: Mapping[str, str] | None) -> None:
        self._name = name
        self._where = where
        self._values = values
        self._environ = environ

    def config(self) -> ServerConfig:
        command, url = self._text("command"), self._text("url") or self._text("serverUrl")
        if bool(command) == bool(url):
            raise self._wrong("needs either a command or a url")
        kind = self._text("type") or self._text("transport")
        if url and kind and kind not in _REMOTE:
            raise self._wrong(f"has the type {kind!r}. Only stdio and streamable HTTP servers can be used")
        tools = self._texts("tools") or self._texts("allowedTools")
        return ServerConfig(
            self._name,
            command=command,
            args=self._texts("args"),
            env=self._pairs("env"),
            cwd=self._text("cwd") or None,
            url=url,
            headers=self._pairs("headers"),
            tools=None if not tools or "*" in tools else tools,
        )

    def _text(self, key: str) -> str:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(f"has {key} {type(value).__name__}, a text is wanted")
        return self._expanded(value or "")

    def _texts(self, key: str) -> tuple[str, ...]:
        value: Any = self._values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in cast("list[Any]", value)):
            raise self._wrong(f"has {key} that is not a list of texts")
        return tuple(map(self._expanded, cast("list[str]", value)))

    def _pairs(self, key: str) -> dict[str, str]:
        value: Any = self._values.get(key) or {}
        if not isinstance(value, dict):
            raise self._wrong(f"has {key} that is not a mapping")
        pairs = cast("dict[str, Any]", value)
        if not all(isinstance(each, str | int | float) for each in pairs.values()):
            raise self._wrong(f"has a value in {key} that is not a text")
        return {name: self._expanded(str(each)) for name, each in pairs.items()}

    def _expanded(self, text: str) -> str:
        if self._environ is None:
            return text
        return _VARIABLE.sub(self._variable, text)

    def _variable(self, found: re.Match[str]) -> str:
        assert self._environ is not None
        name, default = found.groups()
        value = cast("str | None", self._environ.get(name, default))
        if value is None:
            raise self._wrong(f"uses ${{{name}}}, and that variable is not set")
        return value

    def _wrong(self, what: str) -> SettingsError:
        return SettingsError(f"Server {self._name!r} {self._where} {what}.")
