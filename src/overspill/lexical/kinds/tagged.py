"""Messages written in HTML, as forums and chats export them. Their tags would take a good part of a small budget."""

from __future__ import annotations

import re

from msgspec.structs import replace

from overspill.lexical.kinds.messages import MESSAGES, are_messages
from overspill.lexical.kinds.sample import Sample
from overspill.tables.table import Text
from overspill.text import pieces

_BLOCKS = (
    rb"(?:p|br|div|li|ul|ol|dl|dt|dd|blockquote|pre|table|thead|tbody|tr|h[1-6]|hr|section|article|aside|header|footer"
    rb"|details|summary|figure|figcaption)"
)
_INLINE = (
    rb"(?:a|abbr|b|big|center|cite|del|em|font|i|iframe|img|ins|kbd|mark|path|s|small|source|span|strike|strong|sub|sup|svg"
    rb"|td|th|time|tt|u|use|video)"
)
_TAG = rb"<(?:/?(?:" + _BLOCKS + rb"|" + _INLINE + rb")(?=[\s/>])|code\s|/code>\s{0,4}</pre)[^<>]{0,2000}+>"
"""Other names in angle brackets are addresses and types, and `<code>` within a line marks what is to be typed as it is."""
_TAGS = re.compile(_TAG + rb"(?:\s*+" + _TAG + rb")*+", re.IGNORECASE)
_BLOCK = re.compile(rb"</?" + _BLOCKS + rb"[\s/>]", re.IGNORECASE)
_PARAGRAPH = re.compile(
    rb"<br ?/?>\s*+<br|</p>\s*+<(?:p|div|ul|ol|pre|blockquote)|</(?:div|ul|ol|pre|blockquote)>\s*+<p", re.IGNORECASE
)
"""What is between paragraphs. Between the items of a list is only a line end."""
_ENDS_LINE = re.compile(r"</?(?:p|br|div|li|blockquote)\s{0,2}/?>", re.IGNORECASE)
_MIN_TAGGED_SHARE = 0.2
"""Of the lines. With fewer, tags are what some of the messages are about."""
_CHUNK_BYTES = 1 << 20


def _are_tagged(sample: Sample) -> bool:
    return sample.share(_ENDS_LINE.search) > _MIN_TAGGED_SHARE and are_messages(sample)


def _strip_tags(data: Text, size: int, fill: bytes) -> bytearray:
    """With blank lines between paragraphs. Line ends of the text stay, because messages and examples are made of lines."""

    def blank(found: re.Match[bytes]) -> bytes:
        tags = found[0]
        if not _BLOCK.search(tags):
            return fill * len(tags)
        if _PARAGRAPH.search(tags):
            return b"\n\n".ljust(len(tags), fill)
        text, start, end = found.string, found.start(), found.end()
        is_at_line_end = text[start - 1 : start] in (b"\n", b"") or text[end : end + 1] in (b"\n", b"\r", b"")
        return (fill if is_at_line_end else b"\n").ljust(len(tags), fill)

    plain = bytearray(size)
    start = 0
    while start < size:
        end = min(size, pieces.find(data, b"\n", start + _CHUNK_BYTES) + 1 or size)
        plain[start:end] = _TAGS.sub(blank, bytes(data[start:end]))
        start = end
    return plain


TAGGED = replace(
    MESSAGES,
    name="posts",
    recognise=_are_tagged,
    traits=replace(MESSAGES.traits, memory_per_byte=4),
    read=_strip_tags,
)
