"""Check a tool's arguments against the schema that its server lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overspill.reading.references import Check
from overspill.schema import Unchecked, find_misfit
from overspill.text.humanize import one_line


def fits_schema(schema: Any, server: str = "") -> Check:
    """Make a check that says in a sentence what is wrong with arguments. An unusable schema passes: the server will check."""

    def check(args: Mapping[str, Any]) -> str | None:
        try:
            found = find_misfit(schema, args, server)
        except Unchecked:
            return None
        # Quote the rule, not the value, which is stored content and may be large.
        return None if found is None else f"{one_line(found.path)} breaks the rule {one_line(found.rule)}."

    return check
