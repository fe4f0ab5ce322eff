"""Whether arguments suit a tool, by the schema its server lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overspill.reading.references import Check
from overspill.schema import Unchecked, find_misfit
from overspill.text.humanize import one_line


def fits_schema(schema: Any) -> Check:
    """What is wrong with arguments, as a sentence. A schema that cannot be used finds nothing: the server judges for itself."""

    def check(args: Mapping[str, Any]) -> str | None:
        try:
            found = find_misfit(schema, args)
        except Unchecked:
            return None
        # The rule, not the value: that is stored content, and may be large.
        return None if found is None else f"{one_line(found.path)} breaks the rule {one_line(found.rule)}."

    return check
