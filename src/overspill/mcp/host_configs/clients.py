"""The clients that Overspill knows: where their files are, how these spell a server, and how to make a client read a change. Also
what to write by hand for any other client.

Most spell a server `{"command": …, "args": […], "env": {…}}` or `{"url": …, "headers": {…}}`. Where other forms are described:
windsurf     docs.windsurf.com/windsurf/cascade/mcp
cline        docs.cline.bot/mcp/configuring-mcp-servers
codex        developers.openai.com/codex/mcp
gemini-cli   docs/tools/mcp-server.md in the package @google/gemini-cli
opencode     opencode.ai/docs/mcp-servers, and opencode.ai/v2/docs/mcp-servers
zed          zed.dev/docs/ai/mcp
goose        block.github.io/goose/docs/guides/config-files
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from overspill.mcp.host_configs.own_entries import HookPlace

Format: TypeAlias = Literal["json", "toml", "yaml"]


class ConfigDialect(Struct, frozen=True, kw_only=True):
    """How a client spells its servers. The default is what most clients read."""

    format: Format = "json"
    tables: tuple[str, ...] = ("mcpServers", "servers")
    """The keys below which a file has its servers."""
    keys: Mapping[str, str] = {}
    """By each key that only this client uses, the usual key for it."""
    types: Mapping[str, str] = {}
    """By each type that only this client uses, the usual type for it."""
    untyped_url: str = ""
    """The type of an entry that has a URL and no type."""
    has_types: bool = True
    http_type: str | None = "http"
    """The type of an entry that speaks streamable HTTP; empty if it needs none. None: the client speaks only stdio."""
    is_usual: bool = False
    """Whether the client spells everything as usual. A file of such a client may also have servers of single projects."""
    has_command_lists: bool = False
    """Whether `command` is a list that begins with the program."""
    refusals: Mapping[str, str] = {}
    """Why a server with this key, or of this type, cannot run through the proxy."""
    inner_table: str = ""
    """The key in the table that holds the servers in the format's second version."""

    def find_refusal(self, entry: Mapping[str, Any]) -> str:
        return next((why for key, why in self.refusals.items() if key in entry or entry.get("type") == key), "")

    def to_usual(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The keys that say how to reach the server, spelled as usual, and all others unchanged."""
        usual = {self.keys.get(key, key): value for key, value in entry.items()}
        if isinstance(kind := usual.get("type"), str):
            usual["type"] = self.types.get(kind, kind)
        elif "url" in entry and "url" in usual and self.untyped_url:
            usual["type"] = self.untyped_url
        words = usual.get("command")
        if self.has_command_lists and isinstance(words, list) and words:
            first, *args = cast("list[Any]", words)
            usual |= {"command": first, "args": args}
        return usual

    def is_spelled_usually(self, entry: Mapping[str, Any]) -> bool:
        return self.is_usual or ("url" not in entry and self.to_usual(entry) == entry)

    def from_usual(self, usual: Mapping[str, Any]) -> dict[str, Any]:
        entry = dict(usual)
        if self.has_command_lists and "command" in entry:
            entry["command"] = [entry["command"], *entry.pop("args", [])]
        back = {value: key for key, value in self.keys.items()}
        kinds = {value: key for key, value in self.types.items()}
        if not self.has_types:
            entry.pop("type", None)
        elif isinstance(kind := entry.get("type"), str):
            entry["type"] = kinds.get(kind, kind)
        return {back.get(key, key): value for key, value in entry.items()}


USUAL = ConfigDialect(is_usual=True)
_FROM_VARIABLES = "Codex fills in its {key}, and the proxy cannot; write http_headers to wrap it"
_DIALECTS = {
    "windsurf": ConfigDialect(keys={"serverUrl": "url"}, has_types=False),
    "claude-desktop": ConfigDialect(is_usual=True, http_type=None),
    "cline": ConfigDialect(untyped_url="sse", http_type="streamableHttp"),
    "codex": ConfigDialect(
        format="toml",
        tables=("mcp_servers",),
        keys={"http_headers": "headers"},
        has_types=False,
        refusals={key: _FROM_VARIABLES.format(key=key) for key in ("bearer_token_env_var", "env_http_headers")},
    ),
    "gemini-cli": ConfigDialect(
        keys={"httpUrl": "url"},
        untyped_url="sse",
        http_type="",
        refusals={"tcp": "it speaks TCP, which the proxy does not"},
    ),
    "opencode": ConfigDialect(
        tables=("mcp",),
        inner_table="servers",
        keys={"environment": "env"},
        types={"local": "stdio", "remote": "http"},
        has_command_lists=True,
    ),
    "zed": ConfigDialect(tables=("context_servers",), has_types=False, refusals={"settings": "an extension of Zed starts it"}),
    "goose": ConfigDialect(
        format="yaml",
        tables=("extensions",),
        keys={"cmd": "command", "envs": "env", "uri": "url"},
        types={"streamable_http": "http"},
        refusals=dict.fromkeys(("builtin", "platform", "frontend", "inline_python"), "it is part of Goose"),
    ),
}


def guess_dialect(file: Path) -> ConfigDialect:
    """Guess the dialect of a file whose path does not identify the client."""
    client = {".toml": "codex", ".yaml": "goose", ".yml": "goose"}.get(file.suffix.lower(), "")
    return _DIALECTS.get(client, USUAL)


class Client(Struct, frozen=True):
    """`file` holds the user's own servers, `project_file` those of a project, relative to its folder."""

    name: str
    title: str
    file: Path
    project_file: str = ""
    hooks: HookPlace | None = None
    """Where its hooks are, if it lets a hook replace what a built-in tool returns."""

    @property
    def dialect(self) -> ConfigDialect:
        return _DIALECTS.get(self.name, USUAL)

    @property
    def restart(self) -> str:
        return _RESTART[self.name]


_RESTART = {
    "claude-code": "Restart Claude Code; `/mcp` there lists the servers.",
    "claude-desktop": "Quit Claude Desktop from its menu (closing the window is not enough), and start it again.",
    "cursor": "Restart Cursor, or turn the servers off and on in its settings, under Tools & MCP.",
    "vscode": "Restart the servers in VS Code: `MCP: List Servers` in the command palette.",
    "windsurf": "Refresh the servers in Windsurf's Cascade panel.",
    "cline": "Restart the servers in Cline: MCP Servers, Configure.",
    "codex": "Start Codex again; `/mcp` there lists the servers.",
    "gemini-cli": "Start Gemini CLI again; `/mcp` there lists the servers.",
    "opencode": "Start opencode again.",
    "zed": "Zed reads the change when the file is written. Its agent panel lists the servers.",
    "goose": "Start Goose again.",
}


def known_clients(home: Path, platform: str, environ: Mapping[str, str]) -> dict[str, Client]:
    """Return the clients by the names that `overspill wrap` takes. `platform` is a value of `sys.platform`."""
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")  # where command line programs look, on macOS too
    data = config  # where desktop programs look
    if platform == "darwin":
        data = home / "Library" / "Application Support"
    elif platform == "win32":
        data = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    claude, gemini = environ.get("CLAUDE_CONFIG_DIR"), home / ".gemini" / "settings.json"
    claude_settings = Path(claude or home / ".claude") / "settings.json"
    claude_events = {"PostToolUse": "Bash|Read|Grep", "SessionStart": "compact|resume"}
    claude_hooks = HookPlace("claude-code", claude_settings, ".claude/settings.json", claude_events, "stdio")
    gemini_hooks = HookPlace("gemini-cli", gemini, ".gemini/settings.json", {"AfterTool": "run_shell_command|read_file"})
    cline = data / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "settings" / "cline_mcp_settings.json"
    codex = Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    opencode = config / "opencode" / "opencode.jsonc"
    clients = (
        Client("claude-code", "Claude Code", Path(claude or home) / ".claude.json", ".mcp.json", claude_hooks),
        Client("claude-desktop", "Claude Desktop", data / "Claude" / "claude_desktop_config.json"),
        Client("cursor", "Cursor", home / ".cursor" / "mcp.json", ".cursor/mcp.json"),
        Client("vscode", "VS Code", data / "Code" / "User" / "mcp.json", ".vscode/mcp.json"),
        Client("windsurf", "Windsurf", home / ".codeium" / "windsurf" / "mcp_config.json"),
        Client("cline", "Cline", cline),
        Client("codex", "Codex CLI", codex, ".codex/config.toml"),
        Client("gemini-cli", "Gemini CLI", gemini, gemini_hooks.project_file, gemini_hooks),
        Client("opencode", "opencode", opencode if os.path.exists(opencode) else opencode.with_suffix(".json"), "opencode.json"),
        Client("zed", "Zed", config / "zed" / "settings.json", ".zed/settings.json"),
        Client("goose", "Goose", config / "goose" / "config.yaml"),
    )
    return {client.name: client for client in clients}


def find_owner(path: Path, clients: Mapping[str, Client]) -> Client | None:
    place = path.absolute()
    for client in clients.values():
        if place == client.file or (client.project_file and place.as_posix().endswith(f"/{client.project_file}")):
            return client
    return None


def example_entries(launch: Sequence[str]) -> dict[str, Any]:
    """Return entries for users to copy, in the form that most clients take."""
    program, *words = launch
    files = ["--name", "files", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/path/to/files"]
    api = ["--name", "api", "--header-env", "Authorization=API_AUTH", "--url", "https://mcp.example.com/mcp"]
    return {
        "mcpServers": {
            "files": {"command": program, "args": [*words, "proxy", *files]},
            "api": {"command": program, "args": [*words, "proxy", *api], "env": {"API_AUTH": "Bearer YOUR-TOKEN"}},
        }
    }


def instructions(launch: Sequence[str]) -> str:
    return _INSTRUCTIONS.format(pattern=json.dumps(example_entries(launch), indent=2))


_INSTRUCTIONS = """\
For any client that starts MCP servers: let it start Overspill, with the server's own command after `--`.
A server with a URL becomes a command, too. Its headers come from environment variables, so that no process list shows them.

{pattern}

Leave everything else in an entry (env, cwd and so on) unchanged. Clients with other configurations (TOML, YAML, a form) take
the same command, arguments and variables. To go back, remove everything up to `--`."""
