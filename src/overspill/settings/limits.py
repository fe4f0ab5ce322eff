"""Limits that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from overspill.settings.schema import Path, Values

_INLINE, _REFERENCE = "inline_limit", "artifact_threshold"
_GENERAL: tuple[Path, Path] = ("truncation", _INLINE), ("truncation", _REFERENCE)


class Contradiction(Struct, frozen=True):
    """The path of an `inlineLimit`, and that of the `artifactThreshold` which is below it."""

    inline: Path
    reference: Path


def find_contradictions(values: Values) -> Iterator[Contradiction]:
    """In the general limits, and in each rule for a tool or server together with the general ones."""
    for section in {path[:-1]: None for path in values if path[-1] in (_INLINE, _REFERENCE)}:
        inline, reference = (own if (own := (*section, usual[-1])) in values else usual for usual in _GENERAL)
        limit, threshold = values[inline], values[reference]
        if limit is not None and threshold is not None and limit > threshold:
            yield Contradiction(inline, reference)
