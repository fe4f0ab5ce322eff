"""What the rules for a tool and its server change in the settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from overspill.settings.keys import Override, RefsSettings, TruncationSettings
from overspill.settings.presets import TOOL_STRATEGIES


def find_changes(
    tool: str, overrides: Iterable[Override | None], truncation: TruncationSettings, refs: RefsSettings
) -> dict[str, Any]:
    """The changed keys. The strategy that is built in for the tool is weakest, the last override strongest."""
    built_in = {"strategy": TOOL_STRATEGIES[tool]} if tool in TOOL_STRATEGIES else {}
    rule = built_in | {
        name: value for each in overrides if each for name, value in structs.asdict(each).items() if value is not None
    }
    if not rule:
        return {}
    renamed = {"strategy": "default_strategy", "background": "async_"}
    changes = {renamed.get(name, name): value for name, value in rule.items()}
    if "refs" in changes:
        changes["refs"] = structs.replace(refs, enabled=changes["refs"])
    shortening = {name: changes.pop(name) for name in tuple(changes) if name in truncation.__struct_fields__}
    return changes | {"truncation": structs.replace(truncation, **shortening)}
