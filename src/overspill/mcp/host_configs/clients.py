"""The clients that Overspill knows: where their files are, and how to make them read a change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from overspill.mcp.host_configs.dialects import CLINE, CODEX, GEMINI_CLI, GOOSE, OPENCODE, USUAL, WINDSURF, ZED, ConfigDialect
from overspill.mcp.host_configs.own_entries import HookPlace


class Client(Struct, frozen=True):
    """`file` holds the user's own servers, `project_file` those of a project, relative to its folder."""

    name: str
    title: str
    file: Path
    project_file: str
    restart: str
    dialect: ConfigDialect = USUAL
    hooks: HookPlace | None = None
    """Where its hooks are, if it lets a hook replace what a built-in tool returns."""


def known_clients(home: Path, platform: str, environ: Mapping[str, str]) -> dict[str, Client]:
    """By the name that `overspill wrap` takes. `platform` is a value of `sys.platform`."""
    data = _application_data(home, platform, environ)
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    own = environ.get("CLAUDE_CONFIG_DIR")
    code = Path(own or home) / ".claude.json"
    code_settings = Path(own or home / ".claude") / "settings.json"
    code_hooks = HookPlace("claude-code", code_settings, ".claude/settings.json", "PostToolUse", "Bash|Read|Grep", "stdio")
    clients = (
        Client(
            "claude-code",
            "Claude Code",
            code,
            ".mcp.json",
            "Restart Claude Code; `/mcp` there lists the servers.",
            hooks=code_hooks,
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            data / "Claude" / "claude_desktop_config.json",
            "",
            "Quit Claude Desktop from its menu (closing the window is not enough), and start it again.",
        ),
        Client(
            "cursor",
            "Cursor",
            home / ".cursor" / "mcp.json",
            ".cursor/mcp.json",
            "Restart Cursor, or turn the servers off and on in its settings, under Tools & MCP.",
        ),
        Client(
            "vscode",
            "VS Code",
            data / "Code" / "User" / "mcp.json",
            ".vscode/mcp.json",
            "Restart the servers in VS Code: `MCP: List Servers` in the command palette.",
        ),
        *_clients_with_dialects(home, data, config, environ),
    )
    return {client.name: client for client in clients}


def _clients_with_dialects(home: Path, data: Path, config: Path, environ: Mapping[str, str]) -> tuple[Client, ...]:
    """`data` is where desktop programs have their files, `config` where command line programs have them, on macOS too."""
    cline = data / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "settings" / "cline_mcp_settings.json"
    codex = Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    gemini, gemini_project = home / ".gemini" / "settings.json", ".gemini/settings.json"
    opencode = next((path for path in _spell_opencode(config) if os.path.exists(path)), config / "opencode" / "opencode.json")
    return (
        Client(
            "windsurf",
            "Windsurf",
            home / ".codeium" / "windsurf" / "mcp_config.json",
            "",
            "Refresh the servers in Windsurf's Cascade panel.",
            WINDSURF,
        ),
        Client("cline", "Cline", cline, "", "Restart the servers in Cline: MCP Servers, Configure.", CLINE),
        Client("codex", "Codex CLI", codex, ".codex/config.toml", "Start Codex again; `/mcp` there lists the servers.", CODEX),
        Client(
            "gemini-cli",
            "Gemini CLI",
            gemini,
            gemini_project,
            "Start Gemini CLI again; `/mcp` there lists the servers.",
            GEMINI_CLI,
            HookPlace("gemini-cli", gemini, gemini_project, "AfterTool", "run_shell_command|read_file"),
        ),
        Client("opencode", "opencode", opencode, "opencode.json", "Start opencode again.", OPENCODE),
        Client(
            "zed",
            "Zed",
            config / "zed" / "settings.json",
            ".zed/settings.json",
            "Zed reads the change when the file is written. Its agent panel lists the servers.",
            ZED,
        ),
        Client("goose", "Goose", config / "goose" / "config.yaml", "", "Start Goose again.", GOOSE),
    )


def _spell_opencode(config: Path) -> tuple[Path, ...]:
    return tuple(config / "opencode" / f"opencode.{ending}" for ending in ("jsonc", "json"))


def find_owner(path: Path, clients: Mapping[str, Client]) -> Client | None:
    """The client that the file belongs to, by its path."""
    place = path.absolute()
    for client in clients.values():
        if place == client.file or (client.project_file and place.as_posix().endswith(f"/{client.project_file}")):
            return client
    return None


def _application_data(home: Path, platform: str, environ: Mapping[str, str]) -> Path:
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
