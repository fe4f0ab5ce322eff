"""A card: statements about a stored output and samples from it, as many as fit.

Our own statements begin a line. Text from the output is indented, or quoted inside a statement, and cannot be mistaken for one
of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from overspill.gate.cards.sample import OutputSample
from overspill.text import encoding
from overspill.text.humanize import ELLIPSIS, escape_invisible, shorten
from overspill.text.regex import regex
from overspill.wording.names import NextStep

MAX_LINE_CHARS = 240
"""How much to show of one line of the output."""
MAX_NAME_CHARS = 40
"""How much to show of a value or name inside a statement."""
_INDENT = " "
_OTHER_SPACE = regex(r"[^\S\t\n ]")
_PLAIN_NAME = regex(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*+")

Count = Callable[[str], int]


class Section(Struct, frozen=True):
    """A statement and the lines under it, in display order."""

    title: str
    items: Sequence[str] = ("",)
    total: int = 0
    """The total number of items, for a title that says how many are shown; 0 if unknown."""
    first: int = 1
    """How many of the first items to show before further items of any section."""
    fit: Callable[[int, Count], list[str]] | None = None
    """Makes the items for a number of tokens, if they depend on the room."""


class Card(Struct, frozen=True):
    sections: Sequence[Section]
    """The most important first."""
    read: OutputSample
    """The part of the output that it describes."""
    kind: str = ""
    """The kind of output, if the card's maker knows better than the engine."""
    steps: Sequence[NextStep] = ()

    def write(self, limit: int, count: Count) -> str:
        """The card in at most `limit` tokens; empty if not even the first statement fits."""
        shown: dict[int, list[str]] = {}
        order, left, text = list[int](), limit, ""
        for is_first in (True, False):
            for number, section in enumerate(self.sections):
                if is_first:
                    items = section.fit(left, count) if section.fit else section.items[: section.first]
                else:
                    items = section.items[section.first :] if len(shown.get(number, ())) == section.first else ()
                for item in items:
                    cost = count(item) + 1 + (0 if number in shown else count(section.title) + 1)
                    if cost > left:
                        break
                    left -= cost
                    shown.setdefault(number, []).append(item)
                    order.append(number)
        while order and count(text := self._join(shown)) > limit:
            shown[order.pop()].pop()
        return text if order else ""

    def _join(self, shown: dict[int, list[str]]) -> str:
        lines: list[str] = []
        for number, section in enumerate(self.sections):
            items = list(filter(None, shown.get(number, ())))
            some = f" ({len(items):,} of {section.total:,} shown)" if items and len(items) < section.total else ""
            lines += [f"{section.title}{some}:", *items] if items else [section.title] if shown.get(number) else []
        return "\n".join(lines)


def indent(text: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Lines of the output for a card. Folds consecutive equal lines, and leaves out blank ones."""
    lines: list[str] = []
    before, times = "", 0
    for line in [*filter(str.strip, text.split("\n")), ""]:
        if line == before:
            times += 1
            continue
        if times:
            lines.append("(the same once more)" if times == 1 else f"(the same {times:,} more times)")
        before, times = line, 0
        if line:
            flat = make_visible(line.rstrip()[: max_chars + 1])
            lines.append(_INDENT + (flat[:max_chars] + ELLIPSIS if len(flat) > max_chars else flat))
    return "\n".join(lines)


def name(text: str) -> str:
    """A value or name from the output, for use in a sentence of the card: in quotes, unless it is a plain word."""
    short = shorten(make_visible(" ".join(text[: 4 * MAX_NAME_CHARS].split())), MAX_NAME_CHARS)
    if _PLAIN_NAME.fullmatch(short):
        return short
    escaped = short.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def make_visible(text: str) -> str:
    return text if text.isprintable() else escape_invisible(encoding.clean(_OTHER_SPACE.sub(" ", text)))
