"""What to write by hand for a client whose file Overspill does not know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def example_entries(launch: Sequence[str]) -> dict[str, Any]:
    """Return entries for users to copy, in the form that most clients take."""
    program, *words = launch
    command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/path/to/files"]
    return {
        "mcpServers": {
            "files": {"command": program, "args": [*words, "proxy", "--name", "files", "--", *command]},
            "api": {
                "command": program,
                "args": [
                    *words,
                    "proxy",
                    "--name",
                    "api",
                    "--header-env",
                    "Authorization=API_AUTH",
                    "--url",
                    "https://mcp.example.com/mcp",
                ],
                "env": {"API_AUTH": "Bearer YOUR-TOKEN"},
            },
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
