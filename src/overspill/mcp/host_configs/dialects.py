"""How clients spell a server that others spell `{"command": …, "args": […], "env": {…}}` or `{"url": …, "headers": {…}}`.

Where each form is described:
windsurf     docs.windsurf.com/windsurf/cascade/mcp
cline        docs.cline.bot/mcp/configuring-mcp-servers
codex        developers.openai.com/codex/mcp
gemini-cli   docs/tools/mcp-server.md in the package @google/gemini-cli
opencode     opencode.ai/docs/mcp-servers, and opencode.ai/v2/docs/mcp-servers
zed          zed.dev/docs/ai/mcp
goose        block.github.io/goose/docs/guides/config-files
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

Format: TypeAlias = Literal["json", "toml", "yaml"]


class ConfigDialect(Struct, frozen=True, kw_only=True):
    """An empty one is what most clients read."""

    format: Format = "json"
    tables: tuple[str, ...] = ("mcpServers", "servers")
    """The keys below which a file has its servers."""
    keys: Mapping[str, str] = {}
    """The usual key for each of the client's own."""
    types: Mapping[str, str] = {}
    """The usual type for each of the client's own."""
    untyped_url: str = ""
    """The type of an entry that has a URL and no type."""
    has_types: bool = True
    is_usual: bool = False
    """Whether nothing is spelled differently. A file of such a client may also have servers of single projects."""
    has_command_lists: bool = False
    """Whether `command` is a list that begins with the program."""
    refusals: Mapping[str, str] = {}
    """For keys, and types, with which a server cannot run through the proxy, the reason."""

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
WINDSURF = ConfigDialect(keys={"serverUrl": "url"}, has_types=False)
CLINE = ConfigDialect(untyped_url="sse")
GEMINI_CLI = ConfigDialect(
    keys={"httpUrl": "url"}, untyped_url="sse", refusals={"tcp": "it speaks TCP, which the proxy does not"}
)
OPENCODE = ConfigDialect(
    tables=("mcp",), keys={"environment": "env"}, types={"local": "stdio", "remote": "http"}, has_command_lists=True
)
ZED = ConfigDialect(tables=("context_servers",), has_types=False, refusals={"settings": "an extension of Zed starts it"})
_FROM_VARIABLES = "Codex fills in its {key}, and the proxy cannot; write http_headers to wrap it"
CODEX = ConfigDialect(
    format="toml",
    tables=("mcp_servers",),
    keys={"http_headers": "headers"},
    has_types=False,
    refusals={key: _FROM_VARIABLES.format(key=key) for key in ("bearer_token_env_var", "env_http_headers")},
)
GOOSE = ConfigDialect(
    format="yaml",
    tables=("extensions",),
    keys={"cmd": "command", "envs": "env", "uri": "url"},
    types={"streamable_http": "http"},
    refusals=dict.fromkeys(("builtin", "platform", "frontend", "inline_python"), "it is part of Goose"),
)


def guess_dialect(file: Path) -> ConfigDialect:
    """Of a file whose client is not known by its path."""
    return {".toml": CODEX, ".yaml": GOOSE, ".yml": GOOSE}.get(file.suffix.lower(), USUAL)
