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

WINDSURF = """\
{
  "mcpServers": {
    "figma": {
      "serverUrl": "https://mcp.figma.com/mcp",
      "headers": {
        "Authorization": "Bearer ${env:FIGMA_TOKEN}"
      }
    },
    "sqlite": {
      "command": "uvx", // local
      "args": ["mcp-server-sqlite", "--db-path", "/home/ada/a.db"],
      "disabled": false,
      "disabledTools": ["write_query"]
    }
  }
}
"""

CLINE = """\
{
  "mcpServers": {
    "remote": {
      "type": "streamableHttp",
      "url": "https://mcp.example.com/mcp",
      "headers": {"Authorization": "Bearer cline-secret"},
      "disabled": false,
      "autoApprove": ["search"]
    },
    "older": {"url": "https://mcp.example.com/events", "headers": {"X": "y"}},
    "git": {"command": "uvx", "args": ["mcp-server-git"], "timeout": 60}
  }
}
"""

CODEX = """\
# Written by hand.
model = "gpt-6-codex"
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx" # Node.js
args = [
  "-y",
  "docs-mcp", # the newest
]
startup_timeout_sec = 20
since = 2026-11-16

[mcp_servers.docs.env]
API_KEY = "codex-secret"

[mcp_servers.search]
url = "https://mcp.example.com/mcp"
http_headers = { Authorization = "Bearer codex-secret" }
enabled = true

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"

[mcp_servers."with space"]
command = 'tool'

[profiles.quick]
model = "gpt-6-mini"
"""

GEMINI_CLI = """\
{
  "theme": "GitHub",
  "mcpServers": {
    "streamed": {
      "httpUrl": "https://mcp.example.com/mcp",
      "headers": {"Authorization": "Bearer gemini-secret"},
      "timeout": 5000
    },
    "events": {"url": "https://mcp.example.com/events", "headers": {"A": "b"}},
    "local": {
      "command": "python",
      "args": ["-m", "server"], // in this folder
      "cwd": "./servers",
      "trust": true
    }
  }
}
"""

OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  // what I use
  "mcp": {
    "everything": {
      "type": "local",
      "command": ["npx", "-y", "@modelcontextprotocol/server-everything"],
      "environment": {"LOG": "opencode-secret"},
      "enabled": true,
    },
    "sentry": {
      "type": "remote",
      "url": "https://mcp.sentry.dev/mcp",
      "headers": {"Authorization": "Bearer {env:SENTRY}"},
    },
    "signed-in": {"type": "remote", "url": "https://mcp.example.com/mcp", "oauth": {}},
  },
  "model": "anthropic/claude",
}
"""

OPENCODE_2 = """\
{
  "mcp": {
    "servers": {
      "everything": {"type": "local", "command": ["npx", "-y", "server-everything"], "disabled": true}
    }
  }
}
"""

ZED = """\
// Zed settings
{
  "vim_mode": true,
  "context_servers": {
    "files": {
      "source": "custom",
      "command": "npx",
      "args": ["-y", "server-filesystem", "/home/ada"],
      "env": {}
    },
    "remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer zed-secret"}},
    "from-an-extension": {"settings": {"database_url": "postgresql://localhost"}}
  },
  "theme": "One Dark"
}
"""

GOOSE = """\
GOOSE_PROVIDER: anthropic
GOOSE_MODEL: claude  # the usual
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  github:
    args:
    - -y
    - '@modelcontextprotocol/server-github'
    bundled: null
    cmd: npx
    description: ''
    enabled: true
    env_keys:
    - GITHUB_PERSONAL_ACCESS_TOKEN
    envs: {}
    name: GitHub
    timeout: 300
    type: stdio
  remote:
    enabled: false
    headers:
      Authorization: Bearer goose-secret
    name: remote
    type: streamable_http
    uri: https://mcp.example.com/mcp
"""

DIALECTS = {
    "windsurf": WINDSURF,
    "cline": CLINE,
    "codex": CODEX,
    "gemini-cli": GEMINI_CLI,
    "opencode": OPENCODE,
    "zed": ZED,
    "goose": GOOSE,
}
"""By the name that `overspill wrap` takes."""

ALL = {
    "claude-code": CLAUDE_CODE,
    "claude-code-project": CLAUDE_CODE_PROJECT,
    "claude-desktop": CLAUDE_DESKTOP,
    "cursor": CURSOR,
    "vscode": VS_CODE,
}
