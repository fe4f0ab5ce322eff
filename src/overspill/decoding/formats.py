"""Recognises formats by their first bytes."""

from __future__ import annotations

from typing import Literal, TypeAlias

Compression: TypeAlias = Literal["gzip", "bzip2", "xz", "Zstandard"]
UnicodeFormat: TypeAlias = Literal["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"]

HEAD_BYTES = 64 * 1024
"""Enough to recognise every format here."""

_COMPRESSIONS: dict[Compression, tuple[bytes, ...]] = {
    "gzip": (b"\x1f\x8b\x08",),
    "bzip2": tuple(b"BZh%d%s" % (level, block) for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
    "xz": (b"\xfd7zXZ\0",),
    "Zstandard": (b"\x28\xb5\x2f\xfd", *(b"%c\x2a\x4d\x18" % number for number in range(0x50, 0x60))),
}

_BYTE_ORDER_MARKS: tuple[tuple[bytes, UnicodeFormat], ...] = (  # the mark of UTF-32LE begins like that of UTF-16LE
    (b"\xff\xfe\0\0", "UTF-32LE"),
    (b"\0\0\xfe\xff", "UTF-32BE"),
    (b"\xff\xfe", "UTF-16LE"),
    (b"\xfe\xff", "UTF-16BE"),
)

ARCHIVES: tuple[str, ...] = ("a tar archive", "a ZIP archive", "a 7-Zip archive", "a RAR archive", "an ar archive")

_OTHERS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"PK\x05\x06", "a ZIP archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"!<arch>\n", "an ar archive"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF87a", "a GIF image"),
    (0, b"GIF89a", "a GIF image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"\0\0\x01\0", "an icon"),
    (8, b"WEBP", "a WebP image"),
    (8, b"WAVE", "a WAV recording"),
    (8, b"AVI ", "an AVI video"),
    (4, b"ftyp", "an MP4 file"),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM file"),
    (0, b"OggS\0", "an Ogg file"),
    (0, b"fLaC", "a FLAC recording"),
    (0, b"ID3", "an MP3 recording"),
    (0, b"\xff\xfb", "an MP3 recording"),
    (0, b"\x7fELF", "an ELF program or library"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"ORC", "an ORC file"),
    (0, b"Obj\x01", "an Avro file"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Microsoft Office document"),
    (0, b"wOFF", "a font"),
    (0, b"wOF2", "a font"),
    (0, b"\0\x01\0\0\0", "a font"),
    (0, b"\x1f\x9d", "data compressed by compress (.Z)"),
    (0, b"\x04\x22\x4d\x18", "data compressed by LZ4"),
    (0, b"LZIP", "data compressed by lzip"),
    (0, b"\x89LZO\0\r\n\x1a\n", "data compressed by lzop"),
    (0, b"\xff\x06\0\0sNaPpY", "data compressed by Snappy"),
)

_PDF = b"%PDF-"
_MAX_PDF_OFFSET = 1024  # PDF readers accept this much of anything before the header
_TAR_HEADER_BYTES = 512
_CHECKSUM = slice(148, 156)


def find_compression(head: bytes) -> Compression | None:
    return next((name for name, magics in _COMPRESSIONS.items() if head.startswith(magics)), None)


def find_byte_order_mark(head: bytes) -> UnicodeFormat | None:
    return next((name for mark, name in _BYTE_ORDER_MARKS if head.startswith(mark)), None)


def is_pdf(head: bytes) -> bool:
    return _PDF in head[: _MAX_PDF_OFFSET + len(_PDF)]


def is_pdf_source(head: bytes) -> bool:
    """Whether this is a PDF with only text bytes. Only small, handmade ones are."""
    return head.startswith(_PDF) and b" obj" in head


def find_other(head: bytes) -> str:
    """The name of a format that we do not decode, with its article; empty if unknown."""
    if _is_tar(head):
        return "a tar archive"
    if head[:2] == b"MZ" and head[int.from_bytes(head[60:64], "little") :][:4] == b"PE\0\0":
        return "a Windows program or library"
    return next((name for offset, magic, name in _OTHERS if head.startswith(magic, offset)), "")


def _is_tar(head: bytes) -> bool:
    """Whether this is a tar archive: the first header of every kind has a checksum, which must be right."""
    header = head[:_TAR_HEADER_BYTES]
    if len(header) < _TAR_HEADER_BYTES or not header[0]:
        return False
    try:
        noted = int(header[_CHECKSUM].strip(b" \0"), 8)
    except ValueError:
        return False
    return noted == sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ")
