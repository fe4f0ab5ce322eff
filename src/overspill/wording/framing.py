"""Sets stored text apart from our words, in a block. Its mark is chosen after the text is known, so no text can end its block."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Sequence
from itertools import count

OPENING = "untrusted data"
_DIGITS = 6  # three of them are one token in most vocabularies
_OUR_LETTERS = "untrusteddata"
_HEAD_CHARS = 1000  # searched for the first letters
_TRIES = 20


def new_mark(text: str) -> str:
    """Choose random digits that do not occur in the text."""
    for digits in count(_DIGITS):  # more digits are needed only if a very long text holds nearly all marks of one length
        for _ in range(_TRIES):
            if (mark := f"{secrets.randbelow(10**digits):0{digits}}") not in text:
                return mark
    raise AssertionError


def block(label: str, text: str, remark: str = "", ending: str = "") -> str:
    """Write `[label 482913remark]`, the text and `[end of label 482913ending]`, each on separate lines."""
    mark = new_mark(text)
    return f"[{label} {mark}{remark}]\n{text}\n[end of {label} {mark}{ending}]"


def answer(text: str, notes: Sequence[str] = ()) -> str:
    """Write stored text with our notes below it. Text without notes is not wrapped in a block, unless it begins like a block. So
    the first line always shows the reader whether there is a block."""
    if not text:
        return "\n".join(notes)
    if not notes and not imitates(text):
        return text
    return "\n".join([block(OPENING, text), *notes])


def imitates(text: str) -> bool:
    """Whether a text begins with the letters of our own blocks. Ignores everything that is not a letter: brackets, accents,
    invisible characters. If the beginning has too few letters to decide, the text counts as an imitation."""
    head = text[:_HEAD_CHARS]
    letters = "".join(char for char in unicodedata.normalize("NFKD", head).casefold() if char.isalnum())
    if len(letters) < len(_OUR_LETTERS) and len(text) > len(head):
        return _OUR_LETTERS.startswith(letters)
    return letters.startswith(_OUR_LETTERS)
