"""Answers with stored text in a block: taken apart as a careful reader would, by the mark in their first line alone."""

from __future__ import annotations

import re

TOO_LARGE = "Tool output is too large"
"""How every reply to an output that was stored begins. `test_wording` has the whole text."""

_MARK = re.compile(r"((?:untrusted data|preview|passages|output) )\d{6,}")
_FIRST = re.compile(r"\[untrusted data (\d{6,})\]\n")


def unmarked(text: str) -> str:
    """With N in place of every mark, to compare with what is expected."""
    return _MARK.sub(r"\1N", text)


def parted(text: str) -> tuple[str, str]:
    """The stored text, and our words below it; an answer without a block is all stored text."""
    first = _FIRST.match(text)
    if first is None:
        return text, ""
    ending = f"\n[end of untrusted data {first[1]}]"
    assert text.count(ending) == 1
    content, _, notes = text[first.end() :].partition(ending)
    return content, notes.removeprefix("\n")
