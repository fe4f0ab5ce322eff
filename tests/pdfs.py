"""PDF files for tests, sound and hostile."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

BINARY_COMMENT = b"%\xe2\xe3\xcf\xd3\n"
"""The second line of nearly every PDF: it tells programs that the file is not text."""


def make_pdf(*pages: str, binary: bool = True, compress: bool = True) -> bytes:
    """One page for each text, a line of it for each line."""
    return assemble(page_objects([page_content(text) for text in pages], compress=compress), binary=binary)


def page_content(text: str) -> bytes:
    lines = " ".join(f"({line}) Tj T*" for line in text.splitlines())
    return f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET".encode("latin-1")


def page_objects(contents: Sequence[bytes], *, compress: bool = True) -> list[bytes]:
    """Catalog, page tree, font, and two objects for each page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, content in enumerate(contents):
        page = f"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * n} 0 R >>"
        objects += [page.encode(), make_stream(zlib.compress(content) if compress else content, flate=compress)]
    return objects


def make_stream(data: bytes, *, flate: bool = False) -> bytes:
    kind = b" /Filter /FlateDecode" if flate else b""
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(data), kind, data)


def assemble(objects: Sequence[bytes], *, binary: bool = True, trailer: bytes = b"") -> bytes:
    out = bytearray(b"%PDF-1.4\n" + (BINARY_COMMENT if binary else b""))
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer\n<< /Size %d /Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start))
