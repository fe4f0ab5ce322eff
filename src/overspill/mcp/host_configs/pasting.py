"""What to write by hand into a file that cannot be changed without changing more of it than its entries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from overspill.errors import SettingsError
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.dialects import USUAL, ConfigDialect
from overspill.mcp.host_configs.display import HIDDEN, mask
from overspill.mcp.host_configs.opening import UnwritableFile, dump_entry, open_document
from overspill.mcp.host_configs.rewriting import RewriteOutcome, Rewriting
from overspill.text import jsonc


def wrap(text: str, name: str, launch: Sequence[str], only: Sequence[str] = (), dialect: ConfigDialect = USUAL) -> Rewriting:
    """As `rewriting.wrap`. Of a file that cannot be written, the error has the lines to paste, without secrets."""
    try:
        return rewriting.wrap(text, name, launch, only, dialect)
    except UnwritableFile as problem:
        outcomes = rewriting.wrap(text, name, launch, only, dialect, is_written=False).outcomes
        there = open_document(text, name, dialect, is_written=False).entries()
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
