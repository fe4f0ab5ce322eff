"""What a page as a whole is about: the words of its title tell its parts apart no better than words of every part."""

from __future__ import annotations

import html
import re

from overspill.lexical.index import Index
from overspill.lexical.words import split_words, stem
from overspill.text.encoding import decode

_TITLE = re.compile(rb"<title(?:\s[^<>]{0,200})?>([^<]{1,300})", re.IGNORECASE)
_HEAD_BYTES = 65_536


def find_subject(index: Index) -> frozenset[str]:
    """The stems of the words in the title; empty if the text is no page."""
    if not index.traits.is_markup:
        return frozenset()
    found = _TITLE.search(bytes(index.source[:_HEAD_BYTES]))
    return frozenset(map(stem, split_words(html.unescape(decode(found[1]))))) if found else frozenset()
