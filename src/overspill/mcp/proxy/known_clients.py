"""What is known about MCP clients, by the name they send in `clientInfo`. Each row was checked against the released source.

A client may send any name it likes. Nothing here gives it access to anything: a row decides only in which form it gets results
that it asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from overspill.text.regex import regex

Programs: TypeAlias = Literal["always", "sometimes", "never"]
Reader: TypeAlias = Literal["model", "person", "program"]

_VERSION = regex(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?", re.ASCII)


class KnownClient(Struct, frozen=True, kw_only=True):
    name: str
    """As in `clientInfo`, in any case."""
    title: str
    since: str = ""
    """The first version that the row describes; empty: the row describes all versions from the beginning."""
    before: str = ""
    """The first version that it no longer describes; empty: it describes all later ones."""
    programs: Programs
    """Whether programs that its model writes get the results of tools."""
    program_calls: tuple[str, str] | None = None
    """A key of `_meta` and the beginning of its value if a program calls. Without the key, the caller is not known."""
    max_result_bytes: int | None = None
    """The largest result that its programs can take; None: no limit is known."""
    resources_for: Reader = "model"
    """Who reads what it asks for by `resources/read`."""
    defers_tools: bool = False
    """Whether it keeps the schemas of many tools from its model until the model searches for them."""
    source: str
    """Where its released source shows the name and the other facts of the row."""
    checked: str = "2026-11-18"

    def describes(self, version: object) -> bool:
        """Whether it describes this version. A version that cannot be read counts as the newest."""
        found = _parse_version(version)
        if found is None:
            return not self.before
        since, before = _parse_version(self.since), _parse_version(self.before)
        return (since is None or found >= since) and (before is None or found < before)

    def is_program(self, meta: Mapping[str, Any]) -> bool | None:
        """Whether a call with this `_meta` comes from a program; None if that is not known."""
        if self.programs != "sometimes" or self.program_calls is None:
            return {"always": True, "never": False}.get(self.programs)
        key, start = self.program_calls
        said = meta.get(key)
        return said.startswith(start) if isinstance(said, str) else None

    @property
    def question(self) -> str:
        """What the user must choose if nothing says who gets a result."""
        return (
            f"{self.title} may pass results to programs that its model writes, and nothing in a call says so. Large results are "
            f"answered with a card. If programs get them, set clients.{self.name}.programs to whole, otherwise to card. "
            "See docs/code-mode.md."
        )


_CODEX = "npm @openai/codex 0.169.0; github.com/openai/codex, codex-rs/core/src/tools/code_mode and codex-mcp/src/rmcp_client.rs"
_GOOSE = "github.com/block/goose, crates/goose/src/agents/mcp_client.rs and platform_extensions/code_execution.rs"
_CLAUDE = "npm @anthropic-ai/claude-code 2.1.327"
_OPENCODE = "npm opencode-ai 1.18.18: OPENCODE_EXPERIMENTAL_CODE_MODE"
_PYTHON = "PyPI mcp 2.3.0, mcp/client/session.py: DEFAULT_CLIENT_INFO; used by PyPI fastmcp 4.1.2 and pydantic-ai-harness 0.62.0"
_AI_SDK = "npm @ai-sdk/mcp 1.0.101, dist/index.js: clientName; used with npm @cloudflare/codemode 0.5.6"
_MCPORTER = "npm mcporter 0.9.0, dist/runtime.js"
_PCTX = "github.com/portofcontext/pctx, crates/pctx_config/src/server.rs"
_INSPECTOR = "npm @modelcontextprotocol/inspector 2.12.0"
_GEMINI = "npm @google/gemini-cli 0.61.0, bundle/chunk-5FZXKDXH.js"
_ZED = "github.com/zed-industries/zed, crates/context_server/src/context_server.rs"
_CLINE = "github.com/cline/cline, apps/vscode/src/services/mcp/McpHub.ts"

KNOWN_CLIENTS: tuple[KnownClient, ...] = (
    KnownClient(name="codex-mcp-client", title="Codex CLI", before="0.115", programs="never", source=_CODEX),
    KnownClient(name="codex-mcp-client", title="Codex CLI", since="0.115", before="0.148", programs="sometimes", source=_CODEX),
    KnownClient(
        name="codex-mcp-client",
        title="Codex CLI",
        since="0.148",
        programs="sometimes",
        program_calls=("callId", "exec-"),
        max_result_bytes=16_000_000,  # it discards lines of more than 16 MiB, and the call times out
        defers_tools=True,
        source=_CODEX,
    ),
    KnownClient(name="pctx-client", title="pctx", programs="always", resources_for="program", source=_PCTX),
    KnownClient(name="claude-code", title="Claude Code", programs="sometimes", defers_tools=True, source=_CLAUDE),
    KnownClient(name="goose-cli", title="Goose", programs="sometimes", source=_GOOSE),
    KnownClient(name="goose-desktop", title="Goose", programs="sometimes", source=_GOOSE),
    KnownClient(name="opencode", title="opencode", programs="sometimes", source=_OPENCODE),
    KnownClient(name="mcp", title="A client of the Python SDK", programs="sometimes", source=_PYTHON),
    KnownClient(name="ai-sdk-mcp-client", title="A client of the AI SDK", programs="sometimes", source=_AI_SDK),
    KnownClient(name="mcporter", title="mcporter", programs="sometimes", resources_for="person", source=_MCPORTER),
    KnownClient(name="mcp-inspector", title="MCP Inspector", programs="never", resources_for="person", source=_INSPECTOR),
    KnownClient(name="inspector-cli", title="MCP Inspector CLI", programs="never", resources_for="person", source=_INSPECTOR),
    KnownClient(name="gemini-cli-mcp-client", title="Gemini CLI", programs="never", source=_GEMINI),
    KnownClient(name="Zed", title="Zed", programs="never", source=_ZED),
    KnownClient(name="Cline", title="Cline", programs="never", source=_CLINE),
)


def find_known_client(info: Mapping[str, Any]) -> KnownClient | None:
    """Find the row of the client that sent this `clientInfo`."""
    name = info.get("name")
    if not isinstance(name, str):
        return None
    rows = (row for row in KNOWN_CLIENTS if row.name.casefold() == name.casefold())
    return next((row for row in rows if row.describes(info.get("version"))), None)


def _parse_version(version: object) -> tuple[int, ...] | None:
    found = _VERSION.match(version) if isinstance(version, str) else None
    return None if found is None else tuple(int(part or 0) for part in found.groups())
