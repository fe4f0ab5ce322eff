"""Recognises the kind of text, which decides how to read its tables. Imports little, because the loading process uses it."""

from __future__ import annotations

from mmap import mmap

from msgspec.structs import replace

from overspill.lexical.kinds import KINDS, LINES, recognise
from overspill.lexical.kinds.kind import Kind, Sample

_NAMED = {kind.name: kind for kind in KINDS}
_TEXT = replace(LINES, name="text", traits=replace(LINES.traits, layout="text"))
"""Unrecognised text, as opposed to the events of a log."""


def find_kind(text: mmap | bytes, name: str = "") -> Kind:
    """`name` is the name of the kind, if known."""
    if name:
        return _NAMED[name]
    kind = recognise(text)
    return _TEXT if kind is LINES and not kind.recognise(Sample(text, 0, len(text))) else kind
