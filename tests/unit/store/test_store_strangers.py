"""Another user of the machine, in a temporary directory that all may write to."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

US, STRANGER = 64021, 64022
PATIENCE = 60
pytestmark = [
    pytest.mark.slow,  # each test starts several processes
    pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root"),
]

# The interpreter may lie where only root can go, so everything is loaded before root becomes somebody else.
BECOME = """
import os, sqlite3, sys, tempfile
from pathlib import Path
from overspill import handles
from overspill.store.files import layout, lock
from overspill.store.files.store import FileStore

os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
os.umask(0o022)
tempfile.tempdir = sys.argv[2]
root = Path(sys.argv[2])
"""
USE = """
store = FileStore()
shelf = store.open_shelf(handles.new(), name="notes", retention="keep")
writer = shelf.create(id := handles.new())
writer.append(b"ours")
writer.commit()
shelf.close()
assert FileStore().open_shelf(handles.new(), name="notes").session == shelf.session
assert [label.session for label in FileStore().shelves()] == [shelf.session]
assert FileStore().read_shelf(shelf.session).open(id).read(0, 9) == b"ours"
store.close()
"""
SQUAT = {
    "a file": "path.touch(0o666)",
    "a directory": "path.mkdir(0o755)",
    "a directory open to all": "path.mkdir(0o777); path.chmod(0o777)",
    "a link to nowhere": "path.symlink_to(root / 'nowhere')",
    "a link to a directory of ours": "path.symlink_to(root / 'ours')",
    "a link to a file of ours": "path.symlink_to(root / 'ours' / 'lock')",
    "a pipe": "os.mkfifo(path, 0o666)",
    "an unreadable file": "path.touch(0)",
    "a held lock": "path.touch(0o666); path.chmod(0o666); import fcntl; fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX)",
    "a directory with a held lock": """
path.mkdir(0o777); path.chmod(0o777)
(path / "lock").touch(0o666); (path / "lock").chmod(0o666)
import fcntl; fcntl.flock(os.open(path / "lock", os.O_RDWR), fcntl.LOCK_EX)
""",
}
SQUATTED = (f"overspill-{US}.lock", "overspill-lock-000000000000", f"overspill-hints-{US}")
EACH = """
for name in sys.argv[3:]:
    path = root / name
    squat(path)
"""
STAY = "\nprint('there', flush=True); sys.stdin.readline()\n"


def command(uid: int, code: str, root: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-c", BECOME + code, str(uid), str(root), *arguments]


def be(uid: int, code: str, root: Path, *arguments: str) -> str:
    ended = subprocess.run(command(uid, code, root, *arguments), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def staying(uid: int, code: str, root: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has done `code` and lives on until we are through."""
    process = subprocess.Popen(
        command(uid, code + STAY, root, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "there\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def shared() -> Iterator[Path]:
    """As /tmp is: everybody may make something there, and remove only what is theirs."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        be(US, "layout.Directory(os.open(root, os.O_RDONLY), root).make_directory('ours').make_file('lock')", Path(name))
        yield Path(name)


def squatting(kind: str) -> str:
    body = "".join(f"    {line}\n" for line in SQUAT[kind].strip().splitlines())
    return f"def squat(path):\n{body}" + EACH


@pytest.mark.promise("nobody-elses")
@pytest.mark.parametrize("kind", SQUAT)
def test_files_of_another_user_in_our_place_disable_nothing(kind: str, shared: Path):
    with staying(STRANGER, squatting(kind), shared, *SQUATTED):
        before = {name: os.lstat(shared / name) for name in SQUATTED}
        be(US, USE, shared)
    for name, found in before.items():
        assert os.lstat(shared / name).st_ino == found.st_ino
        if stat.S_ISDIR(found.st_mode):
            assert set(os.listdir(shared / name)) <= {"lock"}
    assert os.listdir(shared / "ours") == ["lock"]


def test_thousands_of_directories_of_another_user_are_skipped(shared: Path):
    many = """
for number in range(3000):
    (root / f"overspill-{number:012x}").mkdir()
    (root / f"overspill-lock-{number:012x}").mkdir()
"""
    be(STRANGER, many, shared)
    be(US, USE, shared)
    assert len(os.listdir(shared)) == 6003  # ours, the run that keeps the notes, and the folder of hints


def test_another_user_cannot_take_or_hold_the_lock_that_we_hold(shared: Path):
    attempt = """
names = [name for name in os.listdir(root) if name.startswith("overspill-")]
assert names
for name in names:
    for path in (root / name, root / name / "lock"):
        try:
            os.open(path, os.O_RDONLY)
        except PermissionError:
            continue
        raise AssertionError(path)
"""
    with staying(US, "held = lock.hold_alone(layout.Root(root).open(), within=60); held.__enter__()", shared):
        be(STRANGER, attempt, shared)


@pytest.mark.parametrize("died", [False, True])
def test_processes_of_one_user_take_turns_whatever_others_do(shared: Path, died: bool):
    """Each adds to a file what it read of it and one: a turn that two had at once would lose a count."""
    count = """
(root / "ours" / "count").touch()
for _ in range(25):
    with layout.Root(root).open() as directory, lock.hold_alone(directory, within=60):
        number = (root / "ours" / "count").read_text() or "0"
        (root / "ours" / "count").write_text(str(int(number) + 1))
"""
    if died:
        with staying(US, "held = lock.hold_alone(layout.Root(root).open(), within=60); held.__enter__()", shared):
            pass
        assert [name for name in os.listdir(shared) if name.startswith("overspill-lock-")]
    with ExitStack() as all_of_them:
        all_of_them.enter_context(staying(STRANGER, squatting("a held lock"), shared, *SQUATTED))
        counting = [all_of_them.enter_context(subprocess.Popen(command(US, count, shared))) for _ in range(6)]
        assert [process.wait(PATIENCE) for process in counting] == [0] * 6
    assert (shared / "ours" / "count").read_text() == "150"
    assert sorted(os.listdir(shared)) == ["ours", *sorted(SQUATTED)]
