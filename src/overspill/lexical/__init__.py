"""builtin/lexical: finds the records of a stored output that answer a question, within a token budget, without a model."""

from __future__ import annotations

from overspill.lexical.drafts import Found
from overspill.lexical.index import Index, build
from overspill.lexical.select import Selection, select

__all__ = ["Found", "Index", "Selection", "build", "select"]
