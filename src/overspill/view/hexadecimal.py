"""Bytes as people read them: sixteen in a row, in hexadecimal and as characters."""

from __future__ import annotations

from msgspec import Struct

from overspill.store.protocols import Reader

ROW_BYTES = 16
WINDOW_ROWS = 256
_WINDOW = ROW_BYTES * WINDOW_ROWS


class HexRow(Struct, frozen=True):
    start: int
    hexadecimal: str
    characters: str


class HexRows(Struct, frozen=True):
    rows: tuple[HexRow, ...]
    start: int
    total: int
    before: int | None
    after: int | None


def make_hex_rows(reader: Reader, start: int) -> HexRows:
    """The window with this byte. A place past the end gives the last window."""
    total = reader.size
    start = min(max(start, 0), max(total - 1, 0)) // _WINDOW * _WINDOW
    data = reader.read(start, start + _WINDOW)
    rows = tuple(_make_row(start + at, data[at : at + ROW_BYTES]) for at in range(0, len(data), ROW_BYTES))
    end = start + len(data)
    return HexRows(rows, start, total, max(0, start - _WINDOW) if start else None, end if end < total else None)


def _make_row(start: int, data: bytes) -> HexRow:
    characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    return HexRow(start, data.hex(" "), characters)
