"""The clients that Overspill knows: where their files are, and how to make them read a change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Client(Struct, frozen=True):
    """`file` holds the user's own servers, `project_file` those of a project, relative to its folder."""

    name: str
    title: str
    file: Path
    project_file: str
    restart: str


def known_clients(home: Path, platform: str, environ: Mapping[str, str]) -> dict[str, Client]:
    """By the name that `overspill wrap` takes. `platform` is a value of `sys.platform`."""
    data = _application_data(home, platform, environ)
    code = Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    clients = (
        Client("claude-code", "Claude Code", code, ".mcp.json", "Restart Claude Code; `/mcp` there lists the servers."),
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
    )
    return {client.name: client for client in clients}


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
