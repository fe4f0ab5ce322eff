"""Find a quote in any spelling: models often change white space, quotation marks or escapes when they copy.

`simplify` reduces all spellings of a quote to one form. `build_pattern` finds the spellings of that form in stored bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html.entities import codepoint2name
from itertools import chain

from overspill.extraction.chunks import Span
from overspill.text.encoding import encode
from overspill.text.patterns import Match, compile_pattern, escape
from overspill.text.regex import regex

_MARKS = str.maketrans("“”„«»‘’‚–—‑−", '"""""\'\'\'----')
_ENTITY = regex(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_UNICODE_ESCAPE = regex(r"(?:\\u[0-9a-fA-F]{4})+")
_SPACE_ESCAPE = regex(r"\\[nrtf]")
_MARK_ESCAPE = regex(r"""\\(["'/])""")
_BACKSLASHES = regex(r"\\+")
_BLANK = regex(r"[\s\u200b\ufeff]+")

_SPELLINGS: dict[str, bytes] = {
    " ": rb"(?:[\s\x0b\x1c-\x1f]|\\+[nrtf]|\\+u00[aA]0|&nbsp;|&#160;"
    rb"|\xc2[\x85\xa0]|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe3\x80\x80|\xef\xbb\xbf)+",
    '"': rb'(?:\\*"|\\+u0022|&quot;|&#34;|\xe2\x80[\x9c-\x9e]|\xc2[\xab\xbb]|\\+u201[cCdDeE])',
    "'": rb"(?:\\*'|\\+u0027|&apos;|&#39;|&#x27;|\xe2\x80[\x98-\x9a]|\\+u201[89aA])",
    "-": rb"(?:-|\xe2\x80[\x91\x93\x94]|\xe2\x88\x92|\\+u201[134])",
    "/": rb"\\*/",
    "\\": rb"\\+",
    "<": rb"(?:<|&lt;|\\+u003[cC])",
    ">": rb"(?:>|&gt;|\\+u003[eE])",
    "&": rb"(?:&|&amp;|\\+u0026)",
    # Shown for a byte that is not UTF-8, and for a lone surrogate.
    "\ufffd": rb"(?:\xef\xbf\xbd|\xed[\xa0-\xbf][\x80-\xbf]|[\x80-\xff])",
}
_MAX_PATTERN_MEMORY = 64 << 20


def simplify(text: str) -> str:
    """Resolve escapes and entities, replace typographic marks, collapse white space and strip the ends."""
    text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), _BACKSLASHES.sub(r"\\", text))
    text = _UNICODE_ESCAPE.sub(
        lambda escapes: bytes.fromhex(escapes[0].replace("\\u", "")).decode("utf-16-be", "surrogatepass"), text
    ).translate(_MARKS)
    text = _MARK_ESCAPE.sub(r"\1", _SPACE_ESCAPE.sub(" ", text))
    return _BLANK.sub(" ", text).strip(" \ufffd")


def build_pattern(plain_text: str) -> bytes:
    """Build a pattern that matches a text in all its spellings. It may match too much: compare each match's simple form."""
    return b"".join(_SPELLINGS.get(char) or _encode_variants(char) for char in plain_text)


def escape_literal(text: str) -> bytes:
    return escape(encode(text))


def find_matches(patterns: Iterable[bytes], data: memoryview, spans: Sequence[Span]) -> Iterator[Match]:
    """Matches of any of the patterns, in linear time. Where several begin at the same place, the earlier pattern wins."""
    pattern = compile_pattern(b"|".join(patterns), max_memory=_MAX_PATTERN_MEMORY)
    return chain.from_iterable(pattern.finditer(data, span.start, span.end) for span in spans)


@lru_cache(4096)
def _encode_variants(char: str) -> bytes:
    if char.isascii():
        return escape_literal(char)
    units = char.encode("utf-16-be", "surrogatepass")
    escaped = b"".join(rb"\\+u(?i:%04x)" % int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    code = ord(char)
    named = b"|&%s;" % codepoint2name[code].encode() if code in codepoint2name else b""
    return rb"(?:%s|%s|&#%d;|&#[xX](?i:%x);%s)" % (escape_literal(char), escaped, code, code, named)
