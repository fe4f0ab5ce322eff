"""Finds the encoding of bytes by a mark or a pattern, or guesses it."""

from __future__ import annotations

import codecs
from collections import Counter
from importlib import import_module
from typing import Any
from unicodedata import category

from msgspec import Struct

from overspill.decoding.formats import HEAD_BYTES, UnicodeFormat
from overspill.decoding.limits import Allowance, Layer
from overspill.store.protocols import Reader
from overspill.store.readers import Sink, read_blocks
from overspill.text.humanize import count_noun
from overspill.text.regex import regex

_SAMPLE_BYTES = 32 * 1024  # enough for the library, which takes milliseconds for this much
_SAMPLE_REACH = 100  # how many bytes to sample before one that is not ASCII
_MAX_SAMPLED_LINE = 2000  # how many bytes to sample after it
_CONTROL = regex(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_MULTIBYTE = regex(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTE = regex(rb"[\x80-\xff]")
_MAX_CONTROL_SHARE = 0.01  # the share of all bytes
_MIN_ASCII_SHARE = 0.7
_MIN_ZERO_SHARE = 0.05
_MIN_COMMON_SHARE = 0.9
_MAX_UNLIKELY_SHARE = 0.001
_COHERENCE_TIE = 0.02

LEGACY: dict[str, str] = {
    "windows-1252": "cp1252",
    "windows-1251": "cp1251",
    "Shift_JIS": "cp932",
    "GB18030": "gb18030",
    "EUC-KR": "cp949",
    "Big5": "big5hkscs",
    "EUC-JP": "euc_jp",
    "windows-1250": "cp1250",
    "ISO-8859-2": "iso8859_2",
    "KOI8-R": "koi8_r",
    "windows-1253": "cp1253",
    "windows-1254": "cp1254",
    "windows-1255": "cp1255",
    "windows-1256": "cp1256",
    "windows-1257": "cp1257",
    "windows-1258": "cp1258",
    "windows-874": "cp874",
    "ISO-8859-5": "iso8859_5",
    "ISO-8859-7": "iso8859_7",
    "ISO-8859-15": "iso8859_15",
    "KOI8-U": "koi8_u",
    "IBM866": "cp866",
    "IBM850": "cp850",
    "IBM437": "cp437",
    "macintosh": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
}
"""The encodings in use, by name, the likeliest first. If two fit equally well, the first one wins. They also cover the older
encodings that they extend: windows-1252 reads Latin-1 and ASCII."""

_RARE = ("cp866", "cp850", "cp437", "mac_roman", "mac_cyrillic")
"""Encodings of DOS and old Macs, guessed only if no other fits."""

_UNICODE: dict[UnicodeFormat, str] = {
    "UTF-16LE": "utf-16-le",
    "UTF-16BE": "utf-16-be",
    "UTF-32LE": "utf-32-le",
    "UTF-32BE": "utf-32-be",
}
CODECS: dict[str, str] = {**_UNICODE, **LEGACY}


def is_utf8(reader: Reader, *, has_nul: bool) -> bool:
    """Whether all of it is UTF-8, including lone surrogates. The last character may be cut off. `has_nul`: allow NUL."""
    decoder, has_others = codecs.getincrementaldecoder("utf-8")("surrogatepass"), False
    try:
        for block in read_blocks(reader):
            if not has_nul and b"\0" in block:
                return False
            has_others = not decoder.decode(block).isascii() or has_others
    except UnicodeDecodeError:
        return False
    # A single non-ASCII byte at the end is more likely a letter in another encoding than the beginning of a UTF-8 character.
    return has_others or not decoder.getstate()[0]


def find_unicode(head: bytes, *, is_utf8: bool) -> UnicodeFormat | None:
    """Finds UTF-16 or UTF-32 without a mark: letters share their high byte, which is zero in spaces and line ends.

    `is_utf8`: it is also valid UTF-8 with NULs, so the pattern must hold everywhere.
    """
    for name, codec in _UNICODE.items():
        width = 4 if "32" in name else 2
        units = head[: len(head) - len(head) % width]
        high = Counter(units[width - 1 if name.endswith("LE") else 0 :: width])
        if not high[0] or (width == 4 and len(high) > 1):
            continue
        commonest = sum(count for _, count in high.most_common(2))
        is_pattern = high[0] >= _MIN_ZERO_SHARE * high.total() and commonest >= _MIN_COMMON_SHARE * high.total()
        if is_utf8 and not is_pattern:
            continue
        text = units.decode(codec, "replace")
        # As UTF-16, other bytes look like unassigned, private or control characters, or half of a pair.
        unlikely = (char for char in text if category(char) in ("Cn", "Co", "Cs", "Cc") and char not in "\t\n\r\f\x1b\b")
        if sum(1 for _ in unlikely) + text.count("\ufffd") <= _MAX_UNLIKELY_SHARE * len(text):
            return name
    return None


class EncodingSample(Struct, frozen=True):
    """The sample for guessing an encoding: the beginning, and the surroundings of non-ASCII bytes anywhere."""

    head: bytes
    others: bytes

    @property
    def looks_binary(self) -> bool:
        both = self.head + self.others
        return len(_CONTROL.findall(both)) > _MAX_CONTROL_SHARE * len(both)

    @property
    def is_damaged_utf8(self) -> bool:
        """Whether it has more UTF-8 characters than other bytes, and so is damaged UTF-8 rather than another encoding."""
        characters = _MULTIBYTE.findall(self.others)
        return len(characters) > len(_HIGH_BYTE.findall(self.others)) - sum(map(len, characters))

    @property
    def is_mostly_ascii(self) -> bool:
        both = self.head + self.others
        return len(_HIGH_BYTE.findall(both)) < (1 - _MIN_ASCII_SHARE) * len(both)


def take_sample(reader: Reader) -> EncodingSample:
    others, size = list[bytes](), 0
    for block in read_blocks(reader):
        at = 0
        while size < _SAMPLE_BYTES and (found := _HIGH_BYTE.search(block, at)):
            start = max(at, found.start() - _SAMPLE_REACH)
            end = block.find(b"\n", found.end(), found.end() + _MAX_SAMPLED_LINE)  # not inside a character
            at = end if end >= 0 else found.end() + _MAX_SAMPLED_LINE
            others.append(block[start:at])
            size += len(others[-1])
        if size >= _SAMPLE_BYTES:
            break
    return EncodingSample(reader.read(0, HEAD_BYTES), b"\n".join(others)[:_SAMPLE_BYTES])


def guess(sample: EncodingSample) -> str | None:
    """The name of the likeliest encoding, or None if none fits."""
    library: Any = import_module("charset_normalizer")
    matches = list(library.from_bytes(sample.others, cp_isolation=list(LEGACY.values())))
    fitting = [match for match in matches if match.chaos <= matches[0].chaos]
    common = [match for match in fitting if match.encoding not in _RARE]
    coherence = max((match.coherence for match in common), default=0.0)
    tied = {
        codec
        for match in common or fitting
        if match.coherence >= coherence - _COHERENCE_TIE
        for codec in (match.encoding, *match.could_be_from_charset)
    }
    return next((name for name, codec in LEGACY.items() if codec in tied), None)


def reencode(reader: Reader, name: str, allowance: Allowance) -> Layer:
    """The text in UTF-8, without a byte order mark. Blocks."""
    decoder = codecs.getincrementaldecoder(CODECS[name])("replace")
    read, replaced, stopped = 0, 0, ""
    with Sink() as sink:
        for block in read_blocks(reader):
            if excess := allowance.find_excess(reader.size, sink.size):
                stopped = f"Decoding {name} stopped after {sink.size:,} bytes: {excess}. What follows was not searched."
                break
            text = decoder.decode(block, final=read + len(block) >= reader.size)
            text = text.removeprefix("\ufeff") if not read else text
            read += len(block)
            replaced += text.count("\ufffd")
            sink.add(text.encode("utf-8", "replace"))
        remark = f"{count_noun(replaced, 'character')} could not be decoded as {name}. U+FFFD marks the place."
        return Layer(sink.reader(), stopped, remark if replaced else "")
