"""Show entries of a client's file without their secrets, and an example for other clients."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from overspill.errors import SettingsError
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.clients import USUAL, ConfigDialect
from overspill.mcp.host_configs.documents import UnwritableFile, dump_entry, open_document
from overspill.mcp.host_configs.entries import may_hold_secret
from overspill.mcp.host_configs.rewriting import RewriteOutcome, Rewriting
from overspill.text import jsonc
from overspill.text.jsonc import Edit, Node

HIDDEN = '"…"'
_SECRET_WORDS = re.compile(r"(?i)token|secret|passw|credential|api.?key|auth|bearer|header")


def diff_entry(outcome: RewriteOutcome) -> list[str]:
    """A diff that shows the whole entry."""
    before, after = (mask(text).splitlines() for text in (outcome.before, outcome.after))
    lines = difflib.unified_diff(before, after, n=len(before), lineterm="")
    return list(lines)[3:]


def mask(entry: str) -> str:
    """Hide the values of `env` and `headers`, and URLs and arguments that may hold a secret."""
    node = jsonc.scan(entry, "the entry")
    parts = [part for key in ("env", "headers") if (part := node.get(key))]
    edits = [jsonc.replace(value, HIDDEN) for part in parts for value in part.children or (part,) if value.raw != "{}"]
    url, args = node.get("url"), node.get("args")
    if url and may_hold_secret(str(url.value)):
        edits.append(jsonc.replace(url, HIDDEN))
    return jsonc.apply_edits(entry, edits + (_mask_args(args) if args else []))


def example_entries(launch: Sequence[str]) -> dict[str, Any]:
    """Entries to copy, in the form that most clients take."""
    program, *words = launch
    command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/path/to/files"]
    return {
        "mcpServers": {
            "files": {"command": program, "args": [*words, "proxy", "--name", "files", "--", *command]},
            "api": {
                "command": program,
                "args": [*words, "proxy", "--name", "api", "--header-env", "Authorization=API_AUTH", "--url", _URL],
                "env": {"API_AUTH": "Bearer YOUR-TOKEN"},
            },
        }
    }


def instructions(launch: Sequence[str]) -> str:
    return _INSTRUCTIONS.format(pattern=json.dumps(example_entries(launch), indent=2))


def _mask_args(args: Node) -> list[Edit]:
    texts = ["", *(str(child.value) for child in args.children)]
    secret = [_is_secret(before, word) for before, word in pairwise(texts)]
    return [jsonc.replace(child, HIDDEN) for child, hide in zip(args.children, secret, strict=True) if hide]


def _is_secret(before: str, word: str) -> bool:
    if "://" in word and may_hold_secret(word):
        return True
    if before in ("--header-env", "--url-env"):
        return False
    is_announced = bool(before.startswith("-") and _SECRET_WORDS.search(before) and not word.startswith("-"))
    return is_announced or bool(_SECRET_WORDS.search(word) and re.search(r"[=: ]", word))


_URL = "https://mcp.example.com/mcp"

_INSTRUCTIONS = """\
For any client that starts MCP servers: let it start Overspill, with the server's own command after `--`.
A server with a URL becomes a command, too. Its headers come from environment variables, so that no process list shows them.

{pattern}

Leave everything else in an entry (env, cwd and so on) unchanged. Clients with other configurations (TOML, YAML, a form) take
the same command, arguments and variables. To go back, remove everything up to `--`."""


def wrap(text: str, name: str, launch: Sequence[str], only: Sequence[str] = (), dialect: ConfigDialect = USUAL) -> Rewriting:
    """As `rewriting.wrap`. Of a file that cannot be written, the error has the lines to paste, without secrets."""
    try:
        return rewriting.wrap(text, name, launch, only, dialect)
    except UnwritableFile as problem:
        outcomes = rewriting.wrap(text, name, launch, only, dialect, is_written=False).outcomes
        there = {entry.name: entry.value for entry in open_document(text, name, dialect, is_written=False).entries}
        lines = [_spell(outcome, there[outcome.server], dialect) for outcome in outcomes if outcome.change == "wrapped"]
        if not lines:
            raise
        shown = "\n".join(lines).rstrip()
        own = f" Where it says {HIDDEN}, keep your own value." if HIDDEN.strip('"') in shown else ""
        raise SettingsError(f"{problem} Write these in place of the entries that are there.{own}\n\n{shown}") from None


def _spell(outcome: RewriteOutcome, there: Mapping[str, Any], dialect: ConfigDialect) -> str:
    """Values that stay are taken from the entry that is there: JSON, in which entries are wrapped, has no dates."""
    entry = dialect.from_usual(jsonc.scan(mask(outcome.after), outcome.server).value)
    kept = {key: there[key] for key, value in entry.items() if key in there and _to_json(there[key]) == _to_json(value)}
    return dump_entry({**entry, **kept}, outcome.server, dialect)


def _to_json(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)
