"""What to write by hand into a file that cannot be changed without changing more of it than its entries."""

from __future__ import annotations

from collections.abc import Sequence

from overspill.errors import SettingsError
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.dialects import USUAL, Dialect
from overspill.mcp.host_configs.display import HIDDEN, mask
from overspill.mcp.host_configs.opening import UnwritableFile, dump_entry
from overspill.mcp.host_configs.rewriting import Outcome, Rewriting
from overspill.text import jsonc


def wrap(text: str, name: str, launch: Sequence[str], only: Sequence[str] = (), dialect: Dialect = USUAL) -> Rewriting:
    """As `rewriting.wrap`. Of a file that cannot be written, the error has the lines to paste, without secrets."""
    try:
        return rewriting.wrap(text, name, launch, only, dialect)
    except UnwritableFile as problem:
        outcomes = rewriting.preview(text, name, launch, only, dialect).outcomes
        lines = [_spell(outcome, dialect) for outcome in outcomes if outcome.change == "wrapped"]
        if not lines:
            raise
        shown = "\n".join(lines).rstrip()
        own = f" Where it says {HIDDEN}, keep your own value." if HIDDEN.strip('"') in shown else ""
        raise SettingsError(f"{problem} Write these in place of the entries that are there.{own}\n\n{shown}") from None


def _spell(outcome: Outcome, dialect: Dialect) -> str:
    usual = jsonc.scan(mask(outcome.after), outcome.server).value
    return dump_entry(dialect.from_usual(usual), outcome.server, dialect)
