"""Files of MCP clients in their real shapes, for tests of `overspill wrap`."""

from __future__ import annotations

CLAUDE_CODE = """\
{
  "numStartups": 41,
  "installMethod": "native",
  "tipsHistory": {
    "shift-enter": 27
  },
  "projects": {
    "/home/ada/shop": {
      "allowedTools": [],
      "history": [
        {
          "display": "how do I use {\\"mcpServers\\": 1}?",
          "pastedContents": {}
        }
      ],
      "mcpServers": {
        "postgres": {
          "type": "stdio",
          "command": "uvx",
          "args": [
            "mcp-postgres",
            "postgresql://ada:pw@localhost/shop"
          ],
          "env": {}
        }
      },
      "hasTrustDialogAccepted": true
    },
    "/home/ada/notes": {
      "allowedTools": [],
      "mcpServers": {}
    }
  },
  "oauthAccount": {
    "emailAddress": "ada@example.com"
  },
  "mcpServers": {
    "filesystem": {
      "type": "stdio",
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/home/ada/files"
      ],
      "env": {}
    },
    "notion": {
      "type": "http",
      "url": "https://mcp.notion.com/mcp"
    },
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": {
        "Authorization": "Bearer ${GITHUB_TOKEN}"
      }
    }
  }
}"""

CLAUDE_CODE_PROJECT = """\
{
  "mcpServers": {
    "api": {
      "type": "http",
      "url": "${API_BASE:-https://api.example.com}/mcp",
      "headers": {
        "X-Api-Key": "${API_KEY}"
      }
    }
  }
}
"""

CLAUDE_DESKTOP = """\
{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "time": {
      "command": "uvx",
      "args": ["mcp-server-time", "--local-timezone=Europe/Paris"]
    },
    "linear": {
      "command": "npx",
      "args": ["-y", "mcp-remote", "https://mcp.linear.app/sse", "--header", "Authorization: Bearer ${TOKEN}"],
      "env": {
        "TOKEN": "lin-secret"
      }
    }
  },
  "preferences": {
    "sidebarMode": "task"
  }
}
"""

CURSOR = """\
{
\t"mcpServers": {
\t\t"web": {
\t\t\t"command": "python",
\t\t\t"args": ["${workspaceFolder}/server.py"],
\t\t\t"env": {"API_KEY": "${env:API_KEY}"},
\t\t\t"envFile": "${userHome}/.env"
\t\t},
\t\t"jot": {
\t\t\t"url": "https://api.userjot.com/v1/mcp",
\t\t\t"headers": {"Authorization": "Bearer ${env:JOT_TOKEN}"}
\t\t},
\t\t"old": {"url": "http://localhost:8000/sse"}
\t}
}
"""

VS_CODE = """\
{
  // Asked for once and kept by VS Code.
  "inputs": [
    {"type": "promptString", "id": "github-token", "description": "GitHub token", "password": true},
  ],
  "servers": {
    "playwright": {
      "command": "npx", // Node.js 20 or later
      "args": [
        "-y",
        "@playwright/mcp@latest", /* pinned by nobody */
      ],
    },
    /* "off": {"command": "nothing"}, */
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": {
        // needs the scope repo
        "Authorization": "Bearer ${input:github-token}",
      },
    },
    "fetch": {"type": "stdio", "command": "uvx", "args": ["mcp-server-fetch"], "cwd": "${workspaceFolder}"},
    "debugged": {"command": "node", "args": ["server.js"], "dev": {"debug": {"type": "node"}}},
  },
}
"""

ALL = {
    "claude-code": CLAUDE_CODE,
    "claude-code-project": CLAUDE_CODE_PROJECT,
    "claude-desktop": CLAUDE_DESKTOP,
    "cursor": CURSOR,
    "vscode": VS_CODE,
}
