"""What is known about MCP clients, by the name they send in `clientInfo`. Each row was checked in the client's released source.

A client may send any name it likes. Nothing here gives it access to anything: a row decides only in which form it gets results
that it asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Programs: TypeAlias = Literal["always", "sometimes", "never"]
Reader: TypeAlias = Literal["model", "person", "program"]

_CHECKED = "2026-11-18"
_VERSION = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?", re.ASCII)


class KnownClient(Struct, frozen=True, kw_only=True):
    name: str
    """As in `clientInfo`, in any case."""
    title: str
    since: str = ""
    """The first version that the row describes; empty: the first there was."""
    before: str = ""
    """The first version that it no longer describes; empty: none yet."""
    programs: Programs
    """Whether programs that its model writes get the results of tools."""
    program_calls: tuple[str, str] | None = None
    """A key of `_meta` that says who calls: a program, if the value starts so. Without the key, nothing says it."""
    max_result_bytes: int | None = None
    """The largest result that its programs can take; None: no limit is known."""
    resources_for: Reader = "model"
    """Who reads what it asks for by `resources/read`."""
    defers_tools: bool = False
    """Whether it keeps the schemas of many tools from its model until the model searches for them."""
    source: str
    """Where the name and the rest of the row are in its released source."""
    checked: str = _CHECKED

    def describes(self, version: object) -> bool:
        """Whether it describes this version. A version that cannot be read counts as the newest."""
        found = _parse_version(version)
        if found is None:
            return not self.before
        since, before = _parse_version(self.since), _parse_version(self.before)
        return (since is None or found >= since) and (before is None or found < before)


_PYTHON_SDK = "PyPI mcp 2.3.0, mcp/client/session.py: DEFAULT_CLIENT_INFO"
_GOOSE = "github.com/block/goose, crates/goose/src/agents/mcp_client.rs and platform_extensions/code_execution.rs"
_CODEX = (
    "npm @openai/codex 0.169.0; github.com/openai/codex, codex-rs/codex-mcp/src/rmcp_client.rs, codex-rs/core/src/tools/code_mode"
)

KNOWN_CLIENTS: tuple[KnownClient, ...] = (
    KnownClient(name="codex-mcp-client", title="Codex", before="0.115", programs="never", defers_tools=True, source=_CODEX),
    KnownClient(
        name="codex-mcp-client",
        title="Codex",
        since="0.115",
        programs="sometimes",
        program_calls=("callId", "exec-"),
        max_result_bytes=60_000_000,
        defers_tools=True,
        source=_CODEX,
    ),
    KnownClient(
        name="claude-code",
        title="Claude Code",
        programs="sometimes",
        defers_tools=True,
        source="npm @anthropic-ai/claude-code 2.1.327",
    ),
    KnownClient(name="goose-cli", title="Goose", programs="sometimes", source=_GOOSE),
    KnownClient(name="goose-desktop", title="Goose", programs="sometimes", source=_GOOSE),
    KnownClient(
        name="opencode", title="opencode", programs="sometimes", source="npm opencode-ai 1.18: OPENCODE_EXPERIMENTAL_CODE_MODE"
    ),
    KnownClient(name="mcp", title="the Python SDK's default", programs="sometimes", source=_PYTHON_SDK),
    KnownClient(
        name="mcp-inspector",
        title="MCP Inspector",
        programs="never",
        resources_for="person",
        source="npm @modelcontextprotocol/inspector",
    ),
    KnownClient(name="gemini-cli-mcp-client", title="Gemini CLI", programs="never", source="npm @google/gemini-cli 0.61.0"),
    KnownClient(
        name="Zed",
        title="Zed",
        programs="never",
        source="github.com/zed-industries/zed, crates/context_server/src/context_server.rs",
    ),
    KnownClient(
        name="Cline", title="Cline", programs="never", source="github.com/cline/cline, apps/vscode/src/services/mcp/McpHub.ts"
    ),
)


def find_known_client(info: Mapping[str, Any]) -> KnownClient | None:
    """The row of a client that introduces itself like this."""
    name = info.get("name")
    if not isinstance(name, str):
        return None
    rows = (row for row in KNOWN_CLIENTS if row.name.casefold() == name.casefold())
    return next((row for row in rows if row.describes(info.get("version"))), None)


def _parse_version(version: object) -> tuple[int, ...] | None:
    found = _VERSION.match(version) if isinstance(version, str) else None
    return None if found is None else tuple(int(part or 0) for part in found.groups())
