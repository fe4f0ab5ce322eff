"""The proxy's store cannot be written: servers work, large results are cut and say so, and a store that works again is used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import SOURCE
from waiting import wait_until
from wire import PATIENCE, Process, Served, config, every, proxied

from overspill import handles
from overspill.store.files.store import FileStore

pytestmark = pytest.mark.slow

HANDLE = re.compile(r"session-[0-9a-f-]{36}/[0-9a-f-]{36}|\bout_[0-9a-z]{6,12}\b")
OUTPUT = "".join(f"line {number}: the quick brown fox\n" for number in range(1, 1001))
NOTE = (
    "[The output has 29,893 bytes. None of it was saved: the store does not work at the moment, and `overspill doctor` shows "
    "your user why. The part that is not shown above is lost. Call the tool again and ask for less.]"
)
WORKS_AGAIN = "overspill: The store works again, and large results are stored."
Mend = Callable[[], object]


def a_file_in_the_way(place: Path) -> Mend:
    place.write_text("not a folder")
    return place.unlink


def a_file_above(place: Path) -> Mend:
    place.parent.rmdir()
    place.parent.write_text("not a folder")
    return place.parent.unlink


def a_folder_that_may_not_be_written(place: Path) -> Mend:
    place.mkdir()
    place.chmod(0o500)
    return lambda: place.chmod(0o700)


def a_folder_that_may_not_be_entered(place: Path) -> Mend:
    place.mkdir()
    place.parent.chmod(0o000)
    return lambda: place.parent.chmod(0o700)


def a_folder_of_another_user(place: Path) -> Mend:
    place.mkdir(0o700)
    os.chown(place, 64022, 64022)
    return lambda: os.chown(place, os.geteuid(), os.getegid())


def mount(place: Path, options: str) -> None:
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")


def mount_again(place: Path, options: str) -> None:
    command = ["mount", "-o", f"remount,{options}", str(place)]
    subprocess.run(command, check=True)


def a_read_only_file_system(place: Path) -> Mend:
    mount(place, "ro,size=1m")
    return lambda: mount_again(place, "rw")


def a_full_disk(place: Path) -> Mend:
    mount(place, "size=1m,nr_inodes=3")
    for name in ("filler", "more"):
        (place / name).touch()
    return lambda: mount_again(place, "nr_inodes=100")


def a_link(place: Path) -> Mend:
    (elsewhere := place.parent / "elsewhere").mkdir()
    place.symlink_to(elsewhere)

    def mend() -> None:
        assert list(elsewhere.iterdir()) == []
        place.unlink()

    return mend


CASES = {
    a_file_in_the_way: "a part of the path is a file",
    a_file_above: "a part of the path is a file",
    a_folder_that_may_not_be_written: "Permission denied",
    a_folder_that_may_not_be_entered: "Permission denied",
    a_folder_of_another_user: "Permission denied",
    a_read_only_file_system: "the file system is read-only",
    a_full_disk: "the disk is full",
    a_link: "it is a symbolic link",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the store is to be, as a path below the working directory, in a user's home."""
    (tmp_path / "cwd" / "stores").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield tmp_path / "cwd" / "stores" / "store"
    command = ["umount", "-l", str(tmp_path / "cwd" / "stores" / "store")]
    subprocess.run(command, capture_output=True, check=False)


def bound_by_permissions() -> list[str]:
    """Root may do everything; without these two, what others may do."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root is not bound by permissions")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"]


def call_until_stored(wire: Process) -> str:
    """The store is not tried again at once, lest every large result pay for it."""
    found = wait_until(lambda: HANDLE.search(wire.text("lines", {"count": 1000})), within=PATIENCE)
    assert found is not None
    return found.group()


@pytest.mark.promise("failures-are-answers")
@pytest.mark.parametrize("breaks", CASES, ids=lambda case: case.__name__)
def test_servers_work_large_results_are_cut_and_a_store_that_works_again_is_used(
    place: Path, breaks: Callable[[Path], Mend]
) -> None:
    if breaks is a_folder_of_another_user and os.geteuid():
        pytest.skip("only root can give a folder away")
    mend = breaks(place)
    options = ("--set", "storeDir=stores/store")
    with Process([*bound_by_permissions(), *proxied(every(), *options)]) as wire:
        wire.hello()
        assert "lines" in wire.names()
        assert wire.text("lines", {"count": 1}) == "line 1: the quick brown fox\n"
        shown, note = (block["text"] for block in wire.call("lines", {"count": 1000})["content"])
        assert shown.startswith("line 1: the quick brown fox\n")
        assert shown.endswith("line 1000: the quick brown fox\n")
        assert note == NOTE
        checked = subprocess.run(
            [*bound_by_permissions(), *proxied([])[:3], "doctor", *options],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        assert checked.returncode == 1, checked
        assert "wrong  store: " in checked.stdout
        mend()
        handle = call_until_stored(wire)
        wanted = {"id": handle, "mode": "slice", "slice": {"lines": "1000-1000"}}
        assert "line 1000: the quick brown fox" in wire.text("get_tool_output", wanted)
        assert wire.end() == 0
    lines = wire.errors.decode().splitlines()
    (told,) = [line for line in lines if line.startswith("overspill: Nothing can be stored, so large results are cut. ")]
    assert CASES[breaks] in told
    assert lines.count(WORKS_AGAIN) == 1
    assert not any("journal" in line for line in lines)
    (stored,) = (path for path in place.rglob("session-*/*") if handles.is_uuid(path.name) and handles.name(path.name) == handle)
    assert stored.read_text() == OUTPUT


def test_the_line_comes_at_the_start_even_if_no_client_does(place: Path) -> None:
    place.write_text("not a folder")
    with Process(proxied(every(), "--set", f"storeDir={place}", "--http", "127.0.0.1:0")) as wire:
        wait_until(lambda: b"overspill: Nothing can be stored" in wire.errors or wire.process.poll() is not None)
        assert wire.process.poll() is None, wire.errors
        wire.process.terminate()
        assert wire.process.wait(PATIENCE) == 0


def test_a_slow_call_that_ends_without_a_store_can_be_read_from_memory(place: Path) -> None:
    place.write_text("not a folder")
    with Served([config(every())], place, settings={"asyncTimeoutSecs": 0.05}) as wire:
        wire.hello()
        wire.call("lines", {"count": 1})  # a client's first call is not answered early
        id = re.search(r"art_\w+", wire.text("wait", {"until": "later", "then": "the slow result"}))
        assert id
        wire.call("release", {"word": "later"})
        assert id.group() in wire.text("wait_for_tool_output")
        assert "the slow result" in wire.text("get_tool_output", {"id": id.group(), "mode": "raw"})


def test_what_earlier_sessions_stored_can_be_read_while_nothing_can_be_written(place: Path) -> None:
    mount(place, "size=10m")
    options = ("--set", f"storeDir={place}")
    with Process(proxied(every(), *options)) as wire:
        wire.hello()
        handle = HANDLE.search(wire.text("lines", {"count": 1000}))
        assert handle
        assert wire.end() == 0
    mount_again(place, "ro")
    with Process(proxied(every(), *options)) as wire:
        wire.hello()
        assert wire.call("lines", {"count": 1000})["content"][1]["text"] == NOTE
        wanted = {"id": handle.group(), "mode": "slice", "slice": {"lines": "7-7"}}
        assert "line 7: the quick brown fox" in wire.text("get_tool_output", wanted)
        assert wire.end() == 0
    assert len(FileStore(place).shelves()) == 1
