"""A disk that is really full: what fits is kept, the model is told what was not, and the session goes on."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from frames import parted

from overspill import Session, Settings

SIZE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    (place := tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S607


def fill(place: Path, leave: int = 0) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    os.truncate(filler, filler.stat().st_size - leave)
    return filler


LINES = "".join(f"line {number:06}\n" for number in range(1, 10_001))


@pytest.mark.promise("nothing-silently-cut")
@pytest.mark.parametrize("form", ["text", "bytes", "stream"])
async def test_what_fits_is_kept_and_the_model_is_told_what_is_not(disk: Path, form: str):
    async def stream() -> AsyncIterator[str]:
        for start in range(0, len(LINES), 12_000):
            yield LINES[start : start + 12_000]

    tool = {"text": lambda: LINES, "bytes": LINES.encode, "stream": stream}[form]
    async with Session(Settings(storeDir=str(disk))) as session:
        before = await session.keep("kept before", "note")
        fill(disk, leave=16_384)
        reply = await session.call("dump", {}, tool)
        assert reply.kept is not None
        stored = session.open(reply.kept.handle).bytes()
        assert LINES.encode().startswith(stored)
        assert 4_096 <= len(stored) == reply.kept.size.bytes < len(LINES)
        shown, note = (block["text"] for block in reply.content)
        assert shown.startswith("line 000001\n")
        if form == "text":
            assert shown.endswith("line 010000\n")
        assert note.startswith(f"[The output has 120,000 bytes. Only the first {len(stored):,} were saved: ")
        assert "the disk is full" in note
        assert f'Read what was saved with get_tool_output(id="{reply.kept.name}", mode="slice", ' in note
        assert "the disk is full" in reply.kept.missing
        assert session.open(before.handle).text() == "kept before"
        part = await session.invoke("get_tool_output", {"id": reply.kept.artifact_id, "mode": "slice", "slice": {"lines": "1-2"}})
        content, note = parted(part.text)
        assert content == "line 000001\nline 000002\n"
        assert note.startswith("[Only the first ")


@pytest.mark.parametrize("form", ["text", "bytes"])
async def test_when_nothing_fits_the_output_is_shown_as_far_as_the_limits_allow(disk: Path, form: str):
    async with Session(Settings(storeDir=str(disk))) as session:
        filler = fill(disk)
        reply = await session.call("dump", {}, lambda: LINES if form == "text" else LINES.encode())
        assert (reply.kept, reply.is_error) == (None, False)
        shown, note = (block["text"] for block in reply.content)
        assert shown.startswith("line 000001\n")
        assert shown.endswith("line 010000\n")
        assert len(shown.encode()) <= 12_288
        assert note.startswith("[The output has 120,000 bytes. None of it was saved: ")
        small = await session.call("dump", {}, lambda: "small")
        assert small.text == "small"
        filler.unlink()
        later = await session.call("dump", {}, lambda: LINES)
        assert later.kept is not None
        assert (session.open(later.kept.handle).text(), later.kept.missing) == (LINES, "")


async def test_what_cannot_be_stored_of_a_long_stream_is_said(disk: Path):
    async def stream() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"0123456789abcde\n" * 4096

    async with Session(Settings(storeDir=str(disk))) as session:
        reply = await session.call("dump", {}, stream)
        assert reply.kept is not None
        assert reply.kept.size.bytes < SIZE
        assert "[The output has 2,621,440 bytes. Only the first " in reply.text
