"""A kind of text: how to recognise it, how to read and cut it, and what the rest of the engine must know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import find_line_start
from overspill.tables.table import Text

CutEmbedded: TypeAlias = Callable[[int, int], None]
"""Cuts a span that is a text itself, whatever its kind."""
Locator: TypeAlias = Literal["pointer", "line", "heading"]
"""How a record is located: by a JSON pointer, by its line, or by its line and the heading above it."""
Layout: TypeAlias = Literal[
    "document",
    "documents",
    "rows",
    "aligned",
    "page",
    "elements",
    "commits",
    "events",
    "hunks",
    "results",
    "definitions",
    "paragraphs",
    "text",
]
"""What it consists of, for those who read it as that: as tables, as an outline, as a page. `document` is one JSON document,
`documents` has one for each line; columns are `aligned` with spaces, and a web `page` has tags."""


class Traits(Struct, frozen=True):
    is_celled: bool = False
    """Whether it has cells, so that a term that fills one counts more."""
    is_code: bool = False
    """Whether keywords stand for what people ask for: `def` for functions."""
    has_definitions: bool = False
    """Whether what is below a requested definition is no further definition of that kind."""
    is_program_output: bool = False
    """Whether programs write it while they run. Elsewhere "error" is only a word, unless something visibly gives up."""
    is_log: bool = False
    """Whether it tells what happened, in order: the marks of a test runner are evidence, and the newest is at one end."""
    has_telling_lines: bool = False
    """Whether a list may show the matching line of each record instead of fewer records."""
    is_running_text: bool = False
    """Whether people wrote it for people, so that a word such as "error" reports nothing."""
    has_context: bool = False
    """Whether the records around one that contains what is asked may tell the answer, as the next turn of a conversation."""
    has_topics: bool = False
    """Whether everything below a label, as in a thread, a section or a function, is about one thing."""
    has_replies: bool = False
    """Whether labels are messages, in threads, so that one answers another."""
    is_markup: bool = False
    """Whether runs of white space in it mean nothing."""
    has_members: bool = False
    """Whether a record has named members, so that some of them can be shown without the others."""
    has_string_escapes: bool = False
    """Whether letters in its strings may be escaped."""
    has_one_header: bool = False
    """Whether a first row names the columns of all rows, up to a blank line."""
    size_places: int = 0
    """Among how many first words of a line its size may be."""
    memory_per_byte: int = 1
    """Bytes of memory per byte of text that the index takes."""
    locator: Locator = "heading"
    layout: Layout = "text"


class Kind(Struct, frozen=True):
    name: str
    recognise: Callable[[Sample], bool]
    cut: Callable[[Text, int, int, Outline, CutEmbedded], None]
    traits: Traits = Traits()
    read: Callable[[Text, int, bytes], Text] | None = None
    """Makes its reading, padded with the given byte. Without it, only colours are left out."""
    find_start: Callable[[bytes], int] = find_line_start
    """Where a record may begin in a stretch from the middle of the text, or -1."""
    find_hidden: Callable[[Text], Iterable[tuple[int, int]]] | None = None
    """Finds what a reader of it does not see."""
