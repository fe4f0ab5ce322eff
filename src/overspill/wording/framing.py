"""Sets stored text apart from our words, in a block whose mark is chosen after the text is known: no text can end its block."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from itertools import count

OPENING = "untrusted data"
_DIGITS = 6  # three of them are one token in most vocabularies
_OUR_BEGINNING = re.compile(r"[\W_]*+untrusted[\W_]{0,50}data", re.IGNORECASE)  # possessive, so it never looks back
_TRIES = 20


def new_mark(text: str) -> str:
    """Random digits that do not occur in the text."""
    for digits in count(_DIGITS):  # only a very long text can hold nearly all marks of one length
        for _ in range(_TRIES):
            if (mark := f"{secrets.randbelow(10**digits):0{digits}}") not in text:
                return mark
    raise AssertionError


def block(label: str, text: str, remark: str = "", ending: str = "") -> str:
    """`[label 482913remark]`, the text and `[end of label 482913ending]`, each on lines of their own."""
    mark = new_mark(text)
    return f"[{label} {mark}{remark}]\n{text}\n[end of {label} {mark}{ending}]"


def answer(text: str, notes: Sequence[str] = ()) -> str:
    """Stored text with our notes below it. Without notes there is no block, unless the text begins like one: the first line
    always tells the reader which it is."""
    if not text:
        return "\n".join(notes)
    if not notes and not imitates(text):
        return text
    return "\n".join([block(OPENING, text), *notes])


def imitates(text: str) -> bool:
    """Whether its first words are those of our blocks, ignoring anything before them that is not a word."""
    return _OUR_BEGINNING.match(text) is not None
