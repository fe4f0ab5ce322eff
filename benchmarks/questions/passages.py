"""What a plain full-text search would show: SQLite FTS5 over windows of lines, the best ones until the budget is spent."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

Tokenizer: TypeAlias = Literal["porter", "trigram"]
TOKENIZERS: dict[Tokenizer, str] = {"porter": "porter unicode61", "trigram": "trigram"}
GAP = "\n[...]\n"
MAX_LINE_CHARACTERS = 300  # a longer line is cut, or a minified document would be one passage
WINDOW_CHARACTERS = 600
MAX_CANDIDATES = 400
CHARACTERS_PER_TOKEN = 4
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an the of to in on at is are was were be been and or not for with by from this that which who what when where how why
        did do does it its as has have had you your i we they he she his her their there than then about into after before one
        any if can my""",
    )
)


class Span(NamedTuple):
    start: int
    end: int


def cut_windows(text: str) -> list[Span]:
    """Windows of whole lines that overlap by half."""
    pieces: list[Span] = []
    position = 0
    for line in text.splitlines(keepends=True):
        for offset in range(0, len(line), MAX_LINE_CHARACTERS):
            pieces.append(Span(position + offset, position + min(len(line), offset + MAX_LINE_CHARACTERS)))
        position += len(line)
    windows: list[Span] = []
    first = 0
    while first < len(pieces):
        last = first
        while last + 1 < len(pieces) and pieces[last].end - pieces[first].start < WINDOW_CHARACTERS:
            last += 1
        windows.append(Span(pieces[first].start, pieces[last].end))
        if last + 1 == len(pieces):
            break
        middle = pieces[first].start + WINDOW_CHARACTERS // 2
        first = next((place for place in range(first + 1, last + 1) if pieces[place].start >= middle), last + 1)
    return windows


def merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def fill(text: str, ranked: Iterable[Span], characters: int) -> str:
    """The best spans that fit, in the document's order."""
    chosen: list[Span] = []
    for span in ranked:
        candidate = merge([*chosen, span])
        if sum(end - start for start, end in candidate) + len(GAP) * (len(candidate) - 1) <= characters:
            chosen = candidate
    return GAP.join(text[start:end] for start, end in chosen)


class FullTextIndex:
    """One document in an FTS5 table."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._text = text
        self._tokenizer = tokenizer
        self._windows = cut_windows(text)
        self._database = sqlite3.connect(":memory:")
        self._database.execute(f"CREATE VIRTUAL TABLE passages USING fts5(text, tokenize='{TOKENIZERS[tokenizer]}')")
        rows = ((number, text[start:end]) for number, (start, end) in enumerate(self._windows))
        self._database.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", rows)

    def search(self, question: str, budget: int) -> str:
        return fill(self._text, self._rank(question), budget * CHARACTERS_PER_TOKEN)

    def _rank(self, question: str) -> list[Span]:
        shortest = 3 if self._tokenizer == "trigram" else 1  # trigrams cannot match less
        terms = [word for word in re.findall(r"\w+", question.casefold()) if word not in STOP_WORDS and len(word) >= shortest]
        if not terms:
            return []
        query = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        rows = self._database.execute(
            "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank, rowid LIMIT ?", (query, MAX_CANDIDATES)
        )
        return [self._windows[number] for (number,) in rows]
