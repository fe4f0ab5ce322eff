"""Parse a model's report: the answer, the quotes that support it, and how sure the model is."""

from __future__ import annotations

import re

from msgspec import Struct

NOTHING = "NO RELEVANT DATA FOUND"

_NOTHING = re.compile(rf"\W*+{NOTHING}\W*+", re.IGNORECASE)
# In lower case, the heading must be alone on its line: an answer may well say "Quotes: 3 per user".
_QUOTES = re.compile(r"^[ \t*#_]*(?:QUOTES[ \t*_]*:[ \t*_]*(?=\S)|(?i:QUOTES?)[ \t*_]*+(?::[ \t*_]*+)?\r?$)", re.MULTILINE)
_CONFIDENCE = re.compile(
    r"^[ \t*#_>]*CONFIDENCE[ \t*_]*:[ \t*_]*(\d{1,3}(?:[.,]\d{1,6})?)[ \t]*+(%|/[ \t]*+100)?[ \t*_.]*+\r?$",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED = re.compile(r"^[ \t]*>[ \t]?(.*)$", re.MULTILINE)
_EMPTY_QUOTES = ("", "none", "n/a", "no quotes")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_MAX_QUOTES = 1000


class Report(Struct, frozen=True):
    answer: str
    quotes: tuple[str, ...] = ()
    found: bool = True
    stated_confidence: float | None = None
    """The model's own confidence, 0 to 1, where it gave one."""
    omitted_quotes: int = 0
    """Quotes past the limit, which are not checked."""
    model: str = ""


def parse(content: str, model: str = "") -> Report:
    """Never fails: a report without a section of quotes is all answer."""
    stated = None
    if sure := _find_last(_CONFIDENCE, content):
        value = float(sure[1].replace(",", "."))
        stated = min(value if value <= 1 and not sure[2] else value / 100, 1.0)
        content = content[: sure.start()] + content[sure.end() :]
    if nothing := _NOTHING.match(content):
        return Report(content[nothing.end() :].strip(), found=False, stated_confidence=stated, model=model)
    section = _find_last(_QUOTES, content)
    if section is None:
        return Report(content.strip(), stated_confidence=stated, model=model)
    quotes, remainder = _parse_quotes(content[section.end() :])
    answer = "\n\n".join(part for part in (content[: section.start()].strip(), remainder) if part)
    beyond = max(len(quotes) - _MAX_QUOTES, 0)
    return Report(answer, tuple(quotes[:_MAX_QUOTES]), stated_confidence=stated, omitted_quotes=beyond, model=model)


def render(answer: str, quotes: tuple[str, ...]) -> str:
    """The form that `parse` reads, for the request that merges reports."""
    lines = [f"> {line}" for quote in quotes for line in quote.splitlines() if line.strip()]
    return "\n".join([answer, "QUOTES:", *lines]) if lines else answer


def _parse_quotes(section: str) -> tuple[list[str], str]:
    """The quotes, and the text among them: a model may continue its answer there. Without any `>`, every line is a quote."""
    marked = [found[1].strip() for found in _MARKED.finditer(section)]
    rest = [line.strip() for line in _MARKED.sub("", section).splitlines()]
    lines = marked or [_BULLET.sub("", line) for line in rest]
    quotes = list(dict.fromkeys(line for line in lines if line.strip(" .:*_`\"'()-").lower() not in _EMPTY_QUOTES))
    return quotes, "\n".join(rest).strip("\n` ") if marked else ""


def _find_last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return max(pattern.finditer(text), key=lambda found: found.start(), default=None)
