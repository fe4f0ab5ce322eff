"""What a text is, which decides how its tables are read."""

from __future__ import annotations

from mmap import mmap

from overspill.lexical.kinds import LINES, recognise
from overspill.lexical.kinds.sample import Sample


def name_kind(text: mmap | bytes) -> str:
    """`text` if nothing is known of it."""
    kind = recognise(text)
    return "text" if kind is LINES and not kind.recognise(Sample(text, 0, len(text))) else kind.name
