"""What a text is, which decides how its tables are read. The loading process imports no more than this takes."""

from __future__ import annotations

from mmap import mmap

from msgspec.structs import replace

from overspill.lexical.kinds import KINDS, LINES, recognise
from overspill.lexical.kinds.kind import Kind, Sample

_NAMED = {kind.name: kind for kind in KINDS}
_TEXT = replace(LINES, name="text", traits=replace(LINES.traits, layout="text"))
"""Text of which nothing is known, unlike the events of a log."""


def find_kind(text: mmap | bytes, name: str = "") -> Kind:
    """`name` is that of its kind, if it is known."""
    if name:
        return _NAMED[name]
    kind = recognise(text)
    return _TEXT if kind is LINES and not kind.recognise(Sample(text, 0, len(text))) else kind
