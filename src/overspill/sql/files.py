"""Files and streams as sources of tables, for queries outside a session."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from overspill.decoding import decode
from overspill.errors import BadRequest, NotText
from overspill.sql.library import Source
from overspill.store.readers import BytesReader
from overspill.tables.table import make_name
from overspill.types import Decoding

_KINDS = {".csv": "csv", ".tsv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".xml": "xml"}


def open_file(file: Path, key: str) -> tuple[Source, Decoding]:
    """Opens a file, and decodes it if it is compressed or in another encoding."""
    try:
        with file.open("rb") as opened:
            return _open(opened, key, str(file), file)
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}.") from None


def open_stream(stream: BinaryIO, key: str) -> tuple[Source, Decoding]:
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)
        file.seek(0)
        return _open(file, key, "standard input", None)


def _open(opened: BinaryIO, key: str, label: str, file: Path | None) -> tuple[Source, Decoding]:
    opened.seek(0, 2)
    data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if opened.tell() else b""
    reader = BytesReader(data)
    try:
        found = decode(reader)
    except NotText as error:
        raise NotText(error.what, error.advice, label) from None
    is_unchanged = found.reader is reader
    names = file.suffixes if file is not None else []
    kind = next((_KINDS[suffix.lower()] for suffix in reversed(names) if suffix.lower() in _KINDS), "")
    return Source(key, found.reader, kind, label, file if is_unchanged else None), found.decoding


def name_tables(files: list[Path]) -> list[str]:
    """A table is named by its file's stem, as SQL can spell it; standard input is `input`."""
    names: list[str] = []
    for file in files:
        stem = "input" if str(file) == "-" else make_name(file.name.partition(".")[0] or file.name)
        name = f"t_{stem}" if stem[:1].isdigit() else stem or "input"
        count = sum(other == name or other.startswith(f"{name}_") for other in names)
        names.append(f"{name}_{count + 1}" if name in names else name)
    return names
