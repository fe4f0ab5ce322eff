"""Parse a model's report: the answer, the sources that support it, and how sure the model is.

It forgives what models do: sources inside the wrapper, after it or without one; in fences, bullets, numbers or quotation marks;
instructions repeated; and the words for "nothing found" after a real answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from overspill.extraction.chunks import Span
from overspill.text.regex import Match, Pattern, regex

NOTHING = "NO RELEVANT DATA FOUND"

_NOTHING = regex(rf"(?i)\W*+{NOTHING}\W*+")
# In lower case, the heading must be alone on its line: an answer may well say "Quotes: 3 per user".
_QUOTES = regex(r"(?m)^[ \t*#_]*(?:QUOTES[ \t*_]*:[ \t*_]*(?=\S)|(?i:QUOTES?)[ \t*_]*+(?::[ \t*_]*+)?\r?$)")
_SOURCES = regex(
    r"(?m)^[ \t*#_>-]*+(?:QUOTES?[ \t*_]*+:[ \t*_]*+(?=\S)|(?i:QUOTES?|LINES?|SOURCES?|CITATIONS?)[ \t*_]*+"
    r"(?::?[ \t*_]*+\r?$|:(?=[\s\d,;\[\]()L–-]*+$)))",
)
_CONFIDENCE = regex(
    r"(?im)^[ \t*#_>]*CONFIDENCE[ \t*_]*:[ \t*_]*(\d{1,3}(?:[.,]\d{1,6})?)[ \t]*+(%|/[ \t]*+100)?[ \t*_.]*+\r?$",
)
_MARKED = regex(r"(?m)^[ \t]*>[ \t]?(.*)$")
_FENCE = regex(r"(?m)^[ \t]*`{3,}[\w-]*[ \t]*+\r?$\n?")
_EMPTY_QUOTES = ("", "none", "n/a", "no quotes")
_BULLET = regex(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_NUMBERS = regex(r"(?i)[\s\[\](){}<>#*•.,;:|&–-]*+(?:(?:lines?|nos?\.|and|to|L?\d{1,9})[\s\[\](){}<>#*•.,;:|&–-]*+)++")
_NUMBER = regex(r"(?<![\d.])(\d{1,9})(?:\s?(?:-|–|to)\s?(\d{1,9}))?(?![\d.]\d)")
_CITED = regex(r"(?i)\[(?:lines?\s?|L)?(\d{1,9}(?:\s?[-–,]\s?\d{1,9})*)\]|\((?:lines?\s|L)(\d{1,9}(?:\s?[-–,]\s?\d{1,9})*)\)")
_LEADING_NUMBER = regex(r"[\s>*•-]*+\[?(\d{1,9})(?:\]|\s?\|)")
_MAX_QUOTES = 1000
_MAX_RANGE = 100
"""The most lines in a range. A longer range does not name a source."""


class ModelReport(Struct, frozen=True):
    answer: str
    quotes: tuple[str, ...] = ()
    found: bool = True
    stated_confidence: float | None = None
    """The confidence the model stated, 0 to 1, if it did."""
    omitted_quotes: int = 0
    """Sources that are not checked, or do not support the answer."""
    model: str = ""
    numbers: tuple[int, ...] = ()
    """Numbers of lines that it cites."""
    cited: tuple[Span, ...] = ()
    """The stored bytes of those lines that support the answer."""


def parse(
    content: str,
    model: str = "",
    *,
    has_numbers: bool = False,
    only_sources: bool = False,
    is_echo: Callable[[str], bool] | None = None,
) -> ModelReport:
    """Parse a report. Never fails: without a section of quotes, all of it is the answer.

    `has_numbers`: lines were numbered, so numbers are sources. `only_sources`: the model was to return nothing but sources.
    `is_echo` recognises lines of the instructions, for a report without a wrapper.
    """
    stated = None
    if is_echo:
        content = "\n".join(line for line in _FENCE.sub("", content).splitlines() if not is_echo(line))
    if sure := _find_last(_CONFIDENCE, content):
        value = float(sure[1].replace(",", "."))
        stated = min(value if value <= 1 and not sure[2] else value / 100, 1.0)
        content = content[: sure.start()] + content[sure.end() :]
    section = _find_last(_SOURCES if is_echo else _QUOTES, content)
    start, end = section.span() if section else (len(content), len(content))
    if only_sources and not section and not _NOTHING.match(content):
        start = end = 0
    before = content[:start]
    quotes, remainder, numbers = _parse_quotes(content[end:], has_numbers=has_numbers)
    if nothing := _NOTHING.match(before):
        if not (quotes or numbers) or not is_echo:
            return ModelReport(content[nothing.end() :].strip(), found=False, stated_confidence=stated, model=model)
        before = before[nothing.end() :]
    elif is_echo:
        before = "\n".join(line for line in before.splitlines() if not _NOTHING.fullmatch(line))
    answer = "\n\n".join(part for part in (before.strip(), remainder) if part)
    if has_numbers:
        numbers += [number for found in _CITED.finditer(answer) for number in _expand(found[1] or found[2])]
    beyond = max(len(quotes) - _MAX_QUOTES, 0)
    return ModelReport(
        answer,
        tuple(quotes[:_MAX_QUOTES]),
        stated_confidence=stated,
        omitted_quotes=beyond,
        model=model,
        numbers=tuple(dict.fromkeys(numbers))[:_MAX_QUOTES],
    )


def render(answer: str, quotes: tuple[str, ...]) -> str:
    """Write a report in the form that `parse` reads, for the request that merges reports."""
    lines = [f"> {line}" for quote in quotes for line in quote.splitlines() if line.strip()]
    return "\n".join([answer, "QUOTES:", *lines]) if lines else answer


def _parse_quotes(section: str, *, has_numbers: bool) -> tuple[list[str], str, list[int]]:
    """The quotes, the text among them (a model may continue its answer there), and the numbers of lines.

    Without any `>`, every line is a quote.
    """
    marked = [found[1].strip() for found in _MARKED.finditer(section)]
    rest = [line.strip() for line in _MARKED.sub("", section).splitlines()]
    lines = marked or [_BULLET.sub("", line) for line in rest]
    numbers: list[int] = []
    if has_numbers:
        for line in section.splitlines():  # if a line is all numbers, take them all; else only the one at its start
            if _NUMBERS.fullmatch(line):
                numbers += _expand(line)
            elif begun := _LEADING_NUMBER.match(line):
                numbers.append(int(begun[1]))
        lines = [line for line in lines if not _NUMBERS.fullmatch(line)]
        rest = [line for line in rest if not _NUMBERS.fullmatch(line)]
    quotes = list(dict.fromkeys(line for line in lines if line.strip(" .:*_`\"'()-").lower() not in _EMPTY_QUOTES))
    return quotes, "\n".join(rest).strip("\n` ") if marked else "", numbers


def _expand(text: str) -> Iterator[int]:
    for found in _NUMBER.finditer(text):
        first, last = int(found[1]), int(found[2] or found[1])
        if first <= last < first + _MAX_RANGE:
            yield from range(first, last + 1)


def _find_last(pattern: Pattern[str], text: str) -> Match[str] | None:
    return max(pattern.finditer(text), key=lambda found: found.start(), default=None)
