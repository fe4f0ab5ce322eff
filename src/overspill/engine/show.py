"""What a model reads: excerpts in document order, each under a short locator."""

from __future__ import annotations

import re

from overspill.engine.decode import decode
from overspill.engine.index import Index

_SPACES = re.compile(r"[ \t\f]{2,}|\f")
_BLANK_LINES = re.compile(r"\n\s*\n+")
_KEY = re.compile(rb"\s*\"((?:[^\"\\]|\\.)*)\"\s*:")
_CARRIAGE = re.compile(r"\r+(?=\n)")
_LOCATOR = 90


def shown(index: Index, start: int, end: int) -> str:
    """The reading of a stretch: as stored, but for colours, tags and escapes."""
    part = bytes(index.text[start:end])
    text = decode(part.replace(index.fill, b"") if index.fill else part)
    if index.kind == "html":
        text = _BLANK_LINES.sub("\n", _SPACES.sub(" ", text))
    return _CARRIAGE.sub("", text).strip("\r\n")


def locator(index: Index, record: int, line: int) -> str:
    """A JSON pointer inside JSON; a line, with the heading above it; a byte position where there are no lines."""
    if index.kind == "json":
        return _shorten(pointer(index, record)) or "/"
    outline = index.outline
    place = f"L{line}"
    above = outline.under[record]
    if above < 0 or index.kind in ("csv", "columns", "ndjson") or outline.label_starts[above] >= outline.starts[record]:
        return place
    heading = shown(index, outline.label_starts[above], outline.label_ends[above]).strip("# \t\n")
    return f"{place} {_shorten(heading, 40)}" if "|" not in heading else place


def pointer(index: Index, record: int) -> str:
    outline = index.outline
    parts: list[str] = []
    inner_start, inner = outline.starts[record], record
    for label in outline.lineage(record):
        parts.append(_step(index, label, inner_start, inner))
        inner_start = outline.label_starts[label]
        inner = label
    if key := _KEY.match(index.text, inner_start):
        parts.append(decode(key[1]))
    return "".join("/" + part for part in reversed(parts) if part)


def _step(index: Index, label: int, child_start: int, child: int) -> str:
    """The step from a container to its member: the member's key, or nothing where it has none."""
    key = _KEY.match(index.text, child_start)
    return decode(key[1]).replace("~", "~0").replace("/", "~1") if key else ""


def _shorten(text: str, limit: int = _LOCATOR) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
