"""The reading of an output: what a person would see, with every byte at its original position.

Colours, tags, entities and escapes are overwritten with their meaning, padded with a byte that cannot occur in UTF-8. Every
position in the reading is therefore a position in the stored bytes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from overspill.lexical.scan import search_pieces
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.lines import FILLERS
from overspill.text.patterns import compile_pattern
from overspill.text.regex import regex

_ANSI = regex(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHMNOZ])")

_BLOCK_NAMES = (b"script", b"style", b"svg", b"noscript", b"pre")
_BLOCK = compile_pattern(
    b"<(?i:!--(?:[^<>-]*-->)?|" + b"|".join(rb"%b\b(?:[^<]*</%b[^>]{0,20}>)?" % (name, name) for name in _BLOCK_NAMES) + b")"
)
"""The beginning of an element, or all of one without children. Most have no children, and so are found in one step."""
_NAMED_BY = {
    first + second: name
    for name in (b"!--", *_BLOCK_NAMES)
    for first in (name[:1], name[:1].upper())
    for second in (name[1:2], name[1:2].upper())
}
"""The element that begins with these two letters, in upper or lower case."""
_CLOSED = {b"!--": compile_pattern(rb"-->"), **{name: compile_pattern(rb"(?i:</%b[^>]{0,20}>)" % name) for name in _BLOCK_NAMES}}
_TAG_END = ord(">")
_NEAR_BYTES = 1_000
_OPENING_TAG_BYTES = 200
"""How far to look for the attributes of an element."""
_FACTS = b"ld+json"
"""The type of a script that describes the page in JSON. Readers do not see it, but it often has the answer."""
_ENTITY = rb"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});"
_MARKUP = regex(rb"(</?[a-zA-Z][^<>]*+>|" + _ENTITY + rb"(?:[A-Za-z0-9\x80-\xf4]++|" + _ENTITY + rb")*+)")
"""A tag, or an entity with the rest of its word, to keep padding from splitting the word."""
_KEPT_LINE_END = b"\v"
_ROW_START, _ROW_END, _SOFT_BREAK, _LABEL_START = b"\x1c", b"\x1d", b"\x1e", b"\x1f"
_BREAKS = _ROW_START + _ROW_END + _SOFT_BREAK + _LABEL_START
_TO_SPACES = bytes.maketrans(b"\r\n\t" + _BREAKS, b" " * 7)
_TO_LINE_ENDS = bytes.maketrans(_KEPT_LINE_END + _BREAKS, b"\n" * 5)
_CHUNK_BYTES = 1 << 20
_MAX_REMEMBERED = 10_000
TABLE_EDGE = b"\f"
_STANDS_FOR_TAG = {
    **dict.fromkeys((b"table", b"/table"), b"\n" + TABLE_EDGE + b"\n"),
    **dict.fromkeys(
        b"/h1 /h2 /h3 /h4 /h5 /h6 /section /article pre /pre /title /caption caption blockquote hr script /script".split(), b"\n"
    ),
    **dict.fromkeys((b"tr", b"dt"), _ROW_START),
    **dict.fromkeys((b"/tr", b"/dd"), _ROW_END),
    **dict.fromkeys(b"p /p br br/ li /li /ul /ol div /div dd".split(), _SOFT_BREAK),
    **dict.fromkeys((b"/td", b"/th", b"/dt"), b" | "),
    b"/label": b" ",
}
_MAX_ROW_BYTES = 2_000
"""The longest markup of a row. In longer rows, which pages use for layout, each paragraph is a separate line."""
_ROW = regex(b"%b[^%b%b\f\v\n]{1,%d}+%b" % (_ROW_START, _ROW_START, _ROW_END, _MAX_ROW_BYTES, _ROW_END))
"""A row of a table, or a term with its definition: one line, even if there are other elements in its cells."""
_NOTHING = rb"[ %b]*+" % FILLERS
_LABEL = regex(rb"(%b[^\x1c-\x1f\f\v\n]{1,200}+)%b(%b)%b?" % (_LABEL_START, _SOFT_BREAK, _NOTHING, _SOFT_BREAK))
"""A label in its own element, up to the start of its value, which is in the next element or next to it."""
_LABEL_TAG = regex(rb"(?i)<(?:div|p|li)\s[^<>]{0,200}?class\s?=\s?[\"']?([^<>\"']{3,200})")
_LABEL_CLASS = regex(
    rb"(?:^|[\s_-]|(?<=[a-z])(?=[A-Z]))(?i:label|lbl|title|key|term|caption|heading|header|name|property|attribute)(?=\s|$)"
)
"""Class names for labels on pages without <dt> and <th>: `field__label`, `dataTitle`."""
_HEADING = {b"h1": 1, b"h2": 2, b"h3": 3, b"h4": 4, b"h5": 5, b"h6": 6}

_ESCAPE = regex(rb"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})")
_PLAIN = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"n": b"\n", b"r": b" ", b"t": b"\t", b"b": b" ", b"f": b" "}


def find_filler(data: Text) -> bytes:
    """A byte that does not occur in the text. Empty if all candidates do, which happens only in binary data."""
    return next((filler for value in FILLERS if pieces.find(data, filler := bytes((value,))) < 0), b"")


def strip_colours(data: Text, size: int, fill: bytes) -> bytearray:
    return overwrite(data, size, _ANSI, lambda found: fill * len(found[0]))


def overwrite(data: Text, size: int, pattern: re.Pattern[bytes], stand_in: Callable[[re.Match[bytes]], bytes]) -> bytearray:
    """Overwrites matches in chunks on one buffer, because splitting a large log would take many times its size."""
    plain = bytearray(size)
    start = 0
    while start < size:
        end = min(size, pieces.find(data, b"\n", start + _CHUNK_BYTES) + 1 or size)
        plain[start:end] = pattern.sub(stand_in, bytes(data[start:end]))
        start = end
    return plain


def strip_tags(data: Text, size: int, fill: bytes) -> bytearray:
    """HTML as lines: one for each paragraph, list item and table row, with `|` between cells and `#` before headings."""
    plain = bytearray(data[:size])
    for name, start, end in list(_find_blocks(plain)):
        is_shown = name == b"pre"
        plain[start:end] = bytes(plain[start:end]).replace(b"\n", _KEPT_LINE_END) if is_shown else fill * (end - start)
    stands_for = _StandIns(fill)
    start = 0
    while start < size:
        end = pieces.find(plain, b">", start + _CHUNK_BYTES) + 1 or size
        parts = _MARKUP.split(bytes(plain[start:end]).translate(_TO_SPACES))
        parts[1::2] = map(stands_for.__getitem__, parts[1::2])
        joined = b"".join(parts)
        if _SOFT_BREAK in joined or _LABEL_START in joined:
            joined = _ROW.sub(lambda row: row[0].replace(_SOFT_BREAK, b" ").replace(_LABEL_START, b" "), joined)
        labelled = _LABEL.sub(lambda label: b"%b|%b" % (label[1], label[2].ljust(label.end() - label.start(2))), joined)
        plain[start:end] = labelled.translate(_TO_LINE_ENDS)
        start = end
    return plain


def find_hidden(data: Text) -> Iterator[tuple[int, int]]:
    """Where a page has comments, scripts and styles."""
    return ((start, end) for name, start, end in _find_blocks(data) if name != b"pre")


def _find_blocks(data: Text) -> Iterator[tuple[bytes, int, int]]:
    """Finds comments, scripts, styles, and preformatted text, which keeps its line ends. Leaves out unclosed elements."""
    unclosed: set[bytes] = set()
    reached, named_by = 0, _NAMED_BY
    for start, end in search_pieces(_BLOCK, data, 0, len(data)):
        if start < reached:
            continue
        name = named_by[bytes(data[start + 1 : start + 3])]
        if name in unclosed or (name == b"script" and _has_facts(data, start + 7)):
            continue
        closed = end if data[end - 1] == _TAG_END else _find_closing(data, name, end)
        if closed < 0:
            unclosed.add(name)
        else:
            reached = closed
            yield name, start, reached


def _find_closing(data: Text, name: bytes, start: int) -> int:
    """Where the element ends; -1 if it is unclosed. Looks near its start first: a page may have hundreds of thousands."""
    for end in (min(start + _NEAR_BYTES, len(data)), len(data)):
        if found := next(search_pieces(_CLOSED[name], data, start, end), None):
            return found[1]
    return -1


def _has_facts(data: Text, start: int) -> bool:
    """Whether the script whose attributes begin at `start` is of that type."""
    return _FACTS in bytes(data[start : start + _OPENING_TAG_BYTES]).partition(b">")[0].lower()


class _StandIns(dict[bytes, bytes]):
    """The replacement for each tag or entity, cached because pages repeat them."""

    def __init__(self, fill: bytes) -> None:
        super().__init__()
        self.fill = fill

    def __missing__(self, markup: bytes) -> bytes:
        size = len(markup)
        if markup[:1] == b"&":
            letters = html.unescape(markup.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            plain = letters if len(letters) <= size else markup
        else:
            name = markup[1:-1].split(None, 1)[0].lower()
            plain = _STANDS_FOR_TAG.get(name, b"")
            if name in _HEADING:
                plain = b"\n" + b"#" * min(_HEADING[name], size - 2) + b" "
            elif plain == _SOFT_BREAK and (found := _LABEL_TAG.match(markup)) and _LABEL_CLASS.search(found[1]):
                plain = _LABEL_START
        stand_in = plain.ljust(size, self.fill)
        if len(self) < _MAX_REMEMBERED:
            self[markup] = stand_in
        return stand_in


def unescape(data: bytes, fill: bytes) -> bytes:
    """Undoes one level of escapes in a JSON string."""

    def replace(found: re.Match[bytes]) -> bytes:
        code = found[0][1:]
        if code[:1] != b"u":
            return fill + _PLAIN[code]
        value = int(code[1:], 16)
        return found[0] if 0xD800 <= value < 0xE000 else chr(value).encode().rjust(6, fill)

    # Keep an escaped escape together: `\\\\\\"` is a backslash and what follows it.
    return re.sub(rb"\\(%b)(?s:(.))" % re.escape(fill), rb"\1\\\2", _ESCAPE.sub(replace, data))


def spell_letters(data: Text, start: int, end: int, fill: bytes) -> bytearray:
    """Spells out escaped letters in JSON (`gr\\u00f6\\u00dfer`). Escapes that JSON requires stay."""
    plain = bytearray(data[start:end])
    pattern = escaped_words(fill)
    done, size = 0, len(plain)
    while done < size:
        reached = pieces.find(plain, b",", done + _CHUNK_BYTES) + 1 or size
        plain[done:reached] = pattern.sub(
            lambda found: (found[1] or b"") + _spell_word(found[2] or found[3] or b"", fill), bytes(plain[done:reached])
        )
        done = reached
    return plain


@lru_cache
def escaped_words(fill: bytes) -> re.Pattern[bytes]:
    """Matches an escape that stays, if any, and the word after it, if any."""
    filled = re.escape(fill)
    part = rb"[A-Za-z0-9" + filled + rb"]"
    word = part + rb"*+(?:\\u[0-9a-fA-F]{4}" + part + rb"*+)+"
    return regex(rb"(\\" + filled + rb"?[bfnrt\"/\\])((?:" + word + rb")?)|(?<!" + part + rb")(" + word + rb")")


@lru_cache(maxsize=_MAX_REMEMBERED)
def _spell_word(word: bytes, fill: bytes) -> bytes:
    letters: str = json.loads(b'"' + word.replace(fill, b"") + b'"')
    if not letters.isprintable() or '"' in letters or "\\" in letters:
        return word
    return letters.encode().ljust(len(word), fill)
