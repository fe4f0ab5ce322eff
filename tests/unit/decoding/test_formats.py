"""What is not text is named, and nothing is looked for in it."""

from __future__ import annotations

import io
import sqlite3
import struct
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from compressed import COMPRESS

from overspill.decoding import decode, describe
from overspill.errors import NotText
from overspill.store.readers import BytesReader

NOISE = bytes(range(256)) * 8


def make_tar(data: bytes = b"a log in a tar archive\n", format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        member = tarfile.TarInfo("app.log")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def make_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("app.log", "a log in a ZIP archive\n")
    return out.getvalue()


def make_sqlite(folder: Path) -> bytes:
    with sqlite3.connect(folder / "a.db") as database:
        database.execute("create table a (b)")
    database.close()
    return (folder / "a.db").read_bytes()


SAMPLES = {
    "a tar archive": make_tar(),
    "a ZIP archive": make_zip(),
    "a 7-Zip archive": b"7z\xbc\xaf\x27\x1c" + NOISE,
    "a RAR archive": b"Rar!\x1a\x07\x01\0" + NOISE,
    "a PNG image": b"\x89PNG\r\n\x1a\n" + NOISE,
    "a JPEG image": b"\xff\xd8\xff\xe0" + NOISE,
    "a GIF image": b"GIF89a" + NOISE,
    "a WebP image": b"RIFF\0\0\0\0WEBP" + NOISE,
    "an MP4 file": b"\0\0\0\x18ftypmp42" + NOISE,
    "an MP3 recording": b"ID3\x04\0" + NOISE,
    "a WebAssembly module": b"\0asm\x01\0\0\0" + NOISE,
    "a Parquet file": b"PAR1" + NOISE,
    "an older Microsoft Office document": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + NOISE,
    "a Windows program or library": b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + NOISE,
    "data compressed by LZ4": b"\x04\x22\x4d\x18" + NOISE,
    "data in an unknown format": NOISE,
}


@pytest.mark.parametrize("what", SAMPLES)
def test_what_is_not_text_is_named(what: str):
    with pytest.raises(NotText) as caught:
        decode(BytesReader(SAMPLES[what]))
    assert caught.value.what == what
    assert str(caught.value).startswith(f"The stored output is {what}. It was not searched.")


def test_real_files_are_named(tmp_path: Path):
    assert describe(Path(sys.executable).read_bytes()[:70_000]).what == "An ELF program or library" or sys.platform != "linux"
    assert describe(make_sqlite(tmp_path)).what == "An SQLite database"


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", COMPRESS)
def test_an_archive_inside_compression_is_named_and_not_opened(name: str, format: int):
    with pytest.raises(NotText) as caught:
        decode(BytesReader(COMPRESS[name](make_tar(format=format))))
    assert str(caught.value) == (
        f"The stored output is a tar archive inside {name}. It was not searched. Unpack it and search the files in it."
    )


def test_a_name_says_nothing_about_the_content():
    """There is no name here at all: only bytes are looked at."""
    assert decode(BytesReader(b"plain text\n")).decoding.formats == ()


@pytest.mark.parametrize(
    ("data", "what", "has_text"),
    [
        (COMPRESS["gzip"](b"text"), "Gzip data", True),
        (COMPRESS["Zstandard"](b"text"), "Zstandard data", True),
        ("text\n".encode("utf-16"), "Text in UTF-16LE", True),
        ("Müller\n".encode("latin-1"), "Text that is not UTF-8", True),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "A PDF", True),
        (make_zip(), "A ZIP archive", False),
        (NOISE, "Binary output", False),
        (b"zeros\0in it", "Binary output", True),
        (b"", "Binary output", True),
    ],
)
def test_a_description_needs_only_the_beginning(data: bytes, what: str, has_text: bool):
    found = describe(data)
    assert (found.what, found.has_text) == (what, has_text)
