"""Recognises the format of bytes, and decodes the text in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast, get_args

from msgspec import Struct

from overspill.decoding import encodings, formats, pdf
from overspill.decoding.decompress import decompress
from overspill.decoding.formats import HEAD_BYTES, Compression
from overspill.decoding.limits import Allowance, Limits
from overspill.errors import NotText
from overspill.store.protocols import Reader
from overspill.store.readers import BytesReader
from overspill.types import Decoding

UNKNOWN = "data in an unknown format"
BINARY = "Binary output"
_PLAIN_PDF = "It looks like a PDF file, but it is valid UTF-8, so its source was searched, not its pages."
_DAMAGED = "It is not valid UTF-8 throughout. Each invalid byte reads as U+FFFD."


class Decoded(Struct, frozen=True):
    reader: Reader
    """Its text as UTF-8; the same reader if nothing had to be decoded."""
    decoding: Decoding


class Description(Struct, frozen=True):
    what: str
    """The beginning of a sentence about it."""
    has_text: bool
    """Whether it may contain text that we can decode."""


class _Text(Struct, frozen=True):
    """Text in an encoding; empty for UTF-8."""

    encoding: str = ""
    guessed: bool = False
    remark: str = ""


class _NoText(Struct, frozen=True):
    what: str


_Kind: TypeAlias = Compression | Literal["PDF"] | _Text | _NoText


def decode(reader: Reader, limits: Limits = Limits(), *, is_plain: bool = False) -> Decoded:  # noqa: B008  # frozen
    """Decode the text in bytes. Blocks. Raises NotText or MissingPackage. `is_plain`: known to be UTF-8 without NUL."""
    if is_plain:
        return Decoded(reader, Decoding(remarks=tuple(filter(None, [_plain_text(reader.read(0, HEAD_BYTES)).remark]))))
    return _Layers(reader, limits).open()


def redecode(reader: Reader, names: Sequence[str]) -> Reader:
    """Repeats an earlier decoding, without guessing again."""
    layers = _Layers(reader, Limits())
    for name in names:
        if name in get_args(Compression) or name == "PDF":
            layers.peel(cast("Compression", name))
        elif name in encodings.CODECS:
            layers.peel(_Text(name))
        else:
            raise NotText(f"encoded as {name!r}, which this version does not know")
    return layers.reader


def describe(head: bytes) -> Description:
    """Describes stored bytes by their beginning. Takes only a few milliseconds, because it does not guess encodings."""
    kind = _recognise_format(BytesReader(head[:HEAD_BYTES]))
    match kind:
        case _Text():
            return Description(f"Text in {kind.encoding}" if kind.encoding else BINARY, has_text=True)
        case _NoText():
            return Description(kind.what[0].upper() + kind.what[1:], has_text=False)
        case "PDF":
            return Description("A PDF", has_text=True)
        case None:
            is_text = not encodings.take_sample(BytesReader(head)).looks_binary
            return Description("Text that is not UTF-8" if is_text else BINARY, has_text=is_text)
        case _:
            return Description(f"{kind[0].upper()}{kind[1:]} data", has_text=True)


class _Layers:
    """Removes one layer after another, from the outside in."""

    def __init__(self, reader: Reader, limits: Limits) -> None:
        self.reader = reader
        self._allowance = Allowance(limits)
        self._names: list[str] = []
        self._remarks: list[str] = []
        self._stopped = ""

    def open(self) -> Decoded:
        kind = _recognise(self.reader)
        while isinstance(kind, str) and kind != "PDF":
            if len(self._names) >= self._allowance.limits.layers:
                raise NotText(f"compressed more than {len(self._names)} times ({self._path})")
            self.peel(kind)
            kind = _recognise(self.reader)
        if isinstance(kind, _NoText):
            advice = " Unpack it and search the files in it." if kind.what in formats.ARCHIVES else ""
            raise NotText(kind.what + self._inside(), advice)
        self.peel(kind)
        guessed = isinstance(kind, _Text) and kind.guessed
        remarks = [self._stopped, *self._remarks]
        size = self.reader.size if self._names else 0
        return Decoded(self.reader, Decoding(tuple(self._names), guessed, size, tuple(filter(None, remarks))))

    def peel(self, kind: Compression | Literal["PDF"] | _Text) -> None:
        match kind:
            case _Text(""):
                self._remarks.append(kind.remark)
                return
            case _Text():
                layer = encodings.reencode(self.reader, kind.encoding, self._allowance)
            case "PDF":
                layer = pdf.read_pages(self.reader, self._inside(), self._allowance.limits)
            case _:
                layer = decompress(self.reader, kind, self._allowance, self._inside())
        self._names.append(kind.encoding if isinstance(kind, _Text) else kind)
        self.reader = layer.reader
        # When decoding stops in one layer, the later layers stop too: report only the first reason.
        self._stopped = self._stopped or layer.stopped
        self._remarks.append(layer.remark)

    @property
    def _path(self) -> str:
        return " inside ".join(reversed(self._names))

    def _inside(self) -> str:
        return f" inside {self._path}" if self._names else ""


def _recognise(reader: Reader) -> _Kind:
    if kind := _recognise_format(reader):
        return kind
    sample = encodings.take_sample(reader)
    if sample.looks_binary:
        return _NoText(UNKNOWN)
    if sample.is_damaged_utf8:
        return _Text(remark=_DAMAGED)
    if guessed := encodings.guess(sample):
        return _Text(guessed, guessed=True)
    return _Text(remark=_DAMAGED) if sample.is_mostly_ascii else _NoText(UNKNOWN)


def _recognise_format(reader: Reader) -> _Kind | None:
    """The format if it is (almost) certain. UTF-16 and UTF-32 without a mark have a pattern that nothing else has."""
    head = reader.read(0, HEAD_BYTES)
    if encodings.is_utf8(reader, has_nul=False):
        return _plain_text(head)
    if compression := formats.find_compression(head):
        return compression
    if mark := formats.find_byte_order_mark(head):
        return _Text(mark)
    if formats.is_pdf(head):
        return "PDF"
    if other := formats.find_other(head):
        return _NoText(other)
    is_utf8 = encodings.is_utf8(reader, has_nul=True)
    if unicode := encodings.find_unicode(head, is_utf8=is_utf8):
        return _Text(unicode, guessed=True)
    return _Text() if is_utf8 else None


def _plain_text(head: bytes) -> _Text:
    return _Text(remark=_PLAIN_PDF if formats.is_pdf_source(head) else "")
