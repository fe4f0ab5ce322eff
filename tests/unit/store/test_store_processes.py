"""Several real processes on one root."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from overspill import handles
from overspill.errors import NameInUse
from overspill.store.files.shelf import LiveFileShelf
from overspill.store.files.store import FileStore

PATIENCE = 60
KEEPER = """
import sys
from pathlib import Path
from overspill import handles
from overspill.errors import NameInUse
from overspill.store.files.store import FileStore

store = FileStore(Path(sys.argv[1]))
shelves = []
for command in sys.stdin:
    word, *rest = command.split()
    if word == "open":
        retention, name = rest[0], " ".join(rest[1:])
        try:
            shelves.append(store.open_shelf(handles.new(), name=name, retention=retention))
            print(shelves[-1].session, flush=True)
        except NameInUse:
            print("in use", flush=True)
    elif word == "write":
        writer = shelves[-1].create(id := handles.new())
        writer.append(rest[0].encode())
        writer.commit()
        shelves[-1].append_journal(b'{"wrote":"%s"}\\n' % id.encode())
        print(id, flush=True)
    elif word == "list":
        print(*sorted(f"{label.session}={label.live}" for label in store.shelves()), flush=True)
    elif word == "close":
        shelves.pop().close()
        print("closed", flush=True)
"""


class Keeper:
    """A process with a store of its own, told what to do line by line."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def tell(self, command: str) -> None:
        self.process.stdin.write(command.encode() + b"\n")

    def hear(self) -> str:
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "the other process says nothing"
        return self.process.stdout.readline().decode().strip()

    def ask(self, command: str) -> str:
        self.tell(command)
        return self.hear()

    def end(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Callable[[], Keeper]]:
    started: list[Keeper] = []

    def start() -> Keeper:
        started.append(Keeper(tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.process.stdin.close()
        one.process.stdout.close()


def test_processes_sharing_a_root_see_and_read_each_other(keeper, tmp_path):
    store = FileStore(tmp_path)
    first, second = keeper(), keeper()
    sessions = [first.ask("open session"), second.ask("open keep"), store.open_shelf(handles.new()).session]
    everything = " ".join(sorted(f"{session}=True" for session in sessions))
    assert first.ask("list") == second.ask("list") == everything
    id = first.ask("write hello")
    shelf = store.read_shelf(sessions[0])
    assert shelf.open(id).read(0, 99) == b"hello"
    assert list(shelf.journal())[1:] == [b'{"wrote":"%s"}\n' % id.encode()]
    first.end()
    assert second.ask("list") == " ".join(sorted(f"{session}=True" for session in sessions[1:]))
    store.close()


def test_the_end_of_a_process_removes_everything_that_is_not_kept(keeper, tmp_path):
    one = keeper()
    one.ask("open session")
    one.ask("open process")
    one.ask("close")
    kept = one.ask("open keep")
    assert len(FileStore(tmp_path).shelves()) == 3
    one.end()
    assert [(label.session, label.live) for label in FileStore(tmp_path).shelves()] == [(kept, False)]


def test_a_process_with_nothing_to_keep_leaves_nothing_behind(keeper, tmp_path):
    one = keeper()
    one.ask("open process")
    one.ask("write something")
    one.ask("close")
    one.end()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_at_the_next_start_except_what_is_kept(keeper, tmp_path):
    dead, living = keeper(), keeper()
    spared = living.ask("open process")
    living.ask("close")
    lost = [dead.ask("open session"), dead.ask("open process")]
    dead.ask("write data")
    kept = dead.ask("open keep research notes")
    dead.kill()
    store = FileStore(tmp_path)
    assert {label.session: label.live for label in store.shelves()} == dict.fromkeys([*lost, kept, spared], False)
    ours = store.open_shelf(handles.new())
    assert {label.session for label in store.shelves()} == {kept, spared, ours.session}
    assert store.open_shelf(handles.new(), name="research notes").session == kept
    store.close()


def test_many_processes_can_clear_the_same_remains_at_the_same_time(keeper, tmp_path):
    dead, others = keeper(), [keeper() for _ in range(3)]
    for _ in range(5):
        dead.ask("open process")
        dead.ask("write data")
    dead.kill()
    for one in others:
        one.tell("open session")
    sessions = sorted(one.hear() for one in others)
    assert [label.session for label in FileStore(tmp_path).shelves()] == sessions


def test_a_name_is_held_by_one_process(keeper, tmp_path):
    store = FileStore(tmp_path)
    one = keeper()
    session = one.ask("open keep shared")
    with pytest.raises(NameInUse):
        store.open_shelf(handles.new(), name="shared", retention="keep")
    one.ask("close")
    shelf = store.open_shelf(handles.new(), name="shared", retention="keep")
    assert shelf.session == session
    assert one.ask("open keep shared") == "in use"
    shelf.close()
    assert one.ask("open keep shared") == session
    one.kill()
    assert store.open_shelf(handles.new(), name="shared", retention="keep").session == session
    store.close()


def test_one_of_many_that_open_a_new_name_together_wins(keeper):
    several = [keeper() for _ in range(4)]
    for round in range(40):
        for one in several:
            one.tell(f"open keep name {round}")
        answers = [one.hear() for one in several]
        assert answers.count("in use") == 3, answers


def test_threads_of_one_process_compete_for_a_name_fairly(tmp_path):
    def attempt(_: int) -> LiveFileShelf | None:
        try:
            return FileStore(tmp_path).open_shelf(handles.new(), name="one", retention="keep")
        except NameInUse:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(attempt, range(16)))  # a shelf that nobody has any more would give its name back
    assert answers.count(None) == 15


FORKING = """
import os, sys
from pathlib import Path
from overspill import handles
from overspill.errors import StoreError
from overspill.store.files.store import FileStore

store = FileStore(Path(sys.argv[1]))
shelf = store.open_shelf(handles.new())
if not os.fork():
    child = store.open_shelf(handles.new())
    print(len({path.parent for path in Path(sys.argv[1]).glob("*/session-*")}), flush=True)
    for call in (lambda: shelf.create(handles.new()), lambda: shelf.append_journal(b"{}\\n")):
        try:
            call()
        except StoreError as error:
            print("refused" if "was forked from. Open a new session in this process" in str(error) else error, flush=True)
    shelf.close()
    store.close()
    sys.exit()
os.wait()
print(*[label.live for label in store.shelves()], flush=True)
writer = shelf.create(handles.new())
writer.append(b"still mine")
writer.commit()
if not os.fork():
    sys.exit()
os.wait()
print(*[label.live for label in store.shelves()], flush=True)
"""


def test_a_forked_child_has_its_own_run_and_ends_without_touching_its_parents(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.split() == ["2", "refused", "refused", "True", "True"]
    assert list(tmp_path.iterdir()) == []


LINGERING = """
import os, sys
from pathlib import Path
from overspill import handles
from overspill.store.files.store import FileStore

shelf = FileStore(Path(sys.argv[1])).open_shelf(handles.new(), retention="keep")
child, parent = os.pipe()
if not os.fork():
    os.close(parent)
    os.read(child, 1)
    os._exit(0)
shelf.close()
print(*[label.live for label in FileStore(Path(sys.argv[1])).shelves()], flush=True)
os.close(parent)
os.wait()
"""


def test_a_surviving_child_does_not_make_its_parents_closed_session_seem_live(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LINGERING, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.split() == ["False"]


def test_importing_and_constructing_touch_no_file(tmp_path):
    script = (
        "import sys; from pathlib import Path; from overspill.store.files.store import FileStore; FileStore(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "root")], timeout=PATIENCE, check=True)
    assert list(tmp_path.iterdir()) == []


TEMPORARY = """
from pathlib import Path
from overspill import handles
from overspill.store.files.store import FileStore

store = FileStore()
store.open_shelf(handles.new())
print(store.root, len(list(store.root.glob("overspill-*/session-*"))))
"""


def test_without_a_root_the_systems_temporary_directory_is_used(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TEMPORARY],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == f"{tmp_path} 1\n"
    assert list(tmp_path.iterdir()) == []
