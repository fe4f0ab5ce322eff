"""Paragraphs under headings: what the cutters of documents and of conversations share."""

from __future__ import annotations

from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import split_long
from overspill.tables.table import Text


class Paragraphs:
    """The current state: the headings above, and the paragraph that is open. A longer one than `most_bytes` is cut."""

    def __init__(self, text: Text, outline: Outline, most_bytes: int) -> None:
        self.text = text
        self.outline = outline
        self.most_bytes = most_bytes
        self.headings: list[tuple[int, int]] = []
        self.opened = -1
        self.closed = -1

    @property
    def label(self) -> int:
        return self.headings[-1][1] if self.headings else -1

    def heading(self, start: int, end: int, depth: int) -> None:
        """Begins a paragraph with a heading, which is above everything up to the next one of its depth."""
        self.end_paragraph()
        while self.headings and self.headings[-1][0] >= depth:
            self.headings.pop()
        self.headings.append((depth, self.outline.label(start, end, self.label)))
        self.line(start, end)

    def line(self, start: int, end: int) -> None:
        if self.opened < 0:
            self.opened = start
        self.closed = end

    def end_paragraph(self) -> None:
        if self.opened >= 0:
            for part in split_long(self.text, self.opened, self.closed, self.most_bytes):
                self.outline.record(*part, self.label)
        self.opened = -1
