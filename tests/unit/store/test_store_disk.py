"""Disks that are full or read-only, for real."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from overspill import handles
from overspill.errors import StoreError, StoreFull
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits

SIZE = 256 << 10


def mounted(*command: str) -> None:
    done = subprocess.run(["mount", *command], capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    (place := tmp_path / "disk").mkdir()
    mounted("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S607


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk took everything")


def test_on_a_full_disk_what_fits_is_kept_and_can_be_committed(disk):
    store = FileStore(disk)
    shelf = store.open_shelf(handles.new())
    writer = shelf.create(id := handles.new())
    writer.append(b"a" * 4096)
    filler = fill(disk)
    os.truncate(filler, filler.stat().st_size - 8192)
    data = os.urandom(100_000)
    with pytest.raises(StoreFull, match="the disk is full"):
        writer.append(data)
    assert writer.size == 4096 + 8192
    with pytest.raises(StoreFull):
        writer.append(b"more")
    writer.commit()
    assert shelf.open(id).read(0, 1 << 20) == b"a" * 4096 + data[:8192]
    filler.unlink()
    later = shelf.create(handles.new())
    later.append(b"there is room again")
    later.commit()
    store.close()
    assert list(disk.iterdir()) == []


def test_on_a_full_disk_a_journal_line_is_whole_or_missing(disk):
    store = FileStore(disk)
    shelf = store.open_shelf(handles.new())
    line = b"x" * 20_000 + b"\n"
    filler = fill(disk)
    for _ in range(2):
        with pytest.raises(StoreFull, match="the disk is full"):
            shelf.append_journal(line)
        assert len(list(shelf.journal())) == 1
    os.truncate(filler, filler.stat().st_size - 4096)
    with pytest.raises(StoreFull, match="the disk is full"):
        shelf.append_journal(line)
    filler.unlink()
    shelf.append_journal(b"{}\n")
    assert list(shelf.journal())[1:] == [b"{}\n"]
    store.close()


def test_a_session_that_finds_no_room_leaves_nothing_half_made(disk):
    fill(disk)
    with pytest.raises(StoreFull, match="the disk is full"):
        FileStore(disk).open_shelf(handles.new())
    assert [path.name for path in disk.iterdir()] == ["filler"]


def test_a_read_only_store_can_be_read_but_not_written(disk):
    store = FileStore(disk)
    shelf = store.open_shelf(session := handles.new(), retention="keep")
    writer = shelf.create(id := handles.new())
    writer.append(b"still readable")
    writer.commit()
    store.close()
    mounted("-o", "remount,ro", str(disk))
    assert [label.session for label in store.shelves()] == [session]
    assert store.read_shelf(session).open(id).read(0, 99) == b"still readable"
    for call in (
        lambda: store.open_shelf(handles.new()),
        lambda: store.remove_shelf(session),
        lambda: store.expire(KeepLimits(0, 0)),
    ):
        with pytest.raises(StoreError, match=r"the file system is read-only\. Set storeDir to a place you can write to"):
            call()


LIMITED = """
import resource, sys
from pathlib import Path
from overspill import handles
from overspill.errors import StoreFull
from overspill.store.files.store import FileStore
shelf = FileStore(Path(sys.argv[1])).open_shelf(handles.new())
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
writer = shelf.create(id := handles.new())
try:
    writer.append(b"x" * 9000)
except StoreFull as full:
    print(full)
writer.commit()
print(writer.size, shelf.open(id).size)
"""


def test_a_file_larger_than_the_system_allows_keeps_what_fits(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True)
    text, sizes = done.stdout.splitlines()
    assert "the file would be larger than the system allows" in text
    assert sizes == "5000 5000"
    assert list(tmp_path.iterdir()) == []
