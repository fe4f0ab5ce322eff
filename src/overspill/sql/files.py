"""Files and streams as sources of tables, for queries outside a session."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import BinaryIO

from overspill.decoding import decode
from overspill.errors import BadRequest, NotText
from overspill.sql.library import Source
from overspill.store.readers import BytesReader, Sink
from overspill.tables.table import make_name
from overspill.types import Decoding

_KINDS = {".csv": "csv", ".tsv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".xml": "xml"}
_BLOCK_BYTES = 1 << 20


def open_file(file: Path, key: str) -> tuple[Source, Decoding]:
    """Opens a file, and decodes it if it is compressed or in another encoding."""
    try:
        with file.open("rb") as opened:
            if not opened.seekable():  # a pipe
                return open_stream(opened, key, str(file))
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if opened.seek(0, 2) else b""
            return _decode(BytesReader(data), key, str(file), file)
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}.") from None


def open_stream(stream: BinaryIO, key: str, label: str = "standard input") -> tuple[Source, Decoding]:
    with Sink() as sink:
        while block := stream.read(_BLOCK_BYTES):
            sink.add(block)
        return _decode(sink.reader(), key, label)


def _decode(reader: BytesReader, key: str, label: str, file: Path | None = None) -> tuple[Source, Decoding]:
    try:
        found = decode(reader)
    except NotText as error:
        raise NotText(error.what, error.advice, label) from None
    suffixes = map(str.lower, reversed(Path(label).suffixes))
    kind = next((_KINDS[suffix] for suffix in suffixes if suffix in _KINDS), "")
    return Source(key, found.reader, kind, label, file if found.reader is reader else None), found.decoding


def name_tables(files: list[Path]) -> list[str]:
    """A table is named by its file's stem, as SQL can spell it; standard input is `input`."""
    names: list[str] = []
    for file in files:
        stem = "input" if str(file) == "-" else make_name(file.name.partition(".")[0] or file.name)
        name = f"t_{stem}" if stem[:1].isdigit() else stem or "input"
        count = sum(other == name or other.startswith(f"{name}_") for other in names)
        names.append(f"{name}_{count + 1}" if name in names else name)
    return names
