"""What every store that many machines share promises: any worker reads what another stored, and one that dies loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from skewed_clock import skew_clock
from waiting import wait_until

from overspill import handles
from overspill.errors import NameInUse, StoreError, UnknownHandle
from overspill.store.protocols import KeepLimits, Store

PATIENCE = 60
LEASE = 1.0
OPENINGS = {
    "postgresql": (
        "from overspill.store.postgres.store import PostgresStore as Shared\n"
        "store = Shared(sys.argv[1], tenant=sys.argv[2], lease_seconds=float(sys.argv[3]))"
    ),
    "s3": (
        "from overspill.store.objects.store import ObjectStore as Shared\n"
        "store = Shared(sys.argv[1], lease_seconds=float(sys.argv[3]))"
    ),
}
OPENINGS["azure"] = OPENINGS["s3"]
"""How another process opens the store that its arguments name."""
WORKER = """
import sys
from overspill import handles
OPEN

shelf = store.open_shelf(handles.new(), name="research", retention="keep")
writer = shelf.create(id := handles.new())
writer.append(b"acknowledged")
writer.commit()
shelf.append_journal(b'{"wrote":"%s"}\\n' % id.encode())
shelf.create(half := handles.new()).append(b"half")
print(shelf.session, id, half, flush=True)
sys.stdin.read()
"""
FORKING = """
import os, sys
from overspill import handles
from overspill.errors import StoreError
OPEN

shelf = store.open_shelf(handles.new(), retention="process")
writer = shelf.create(id := handles.new())
writer.append(b"mine")
writer.commit()
if not (child := os.fork()):
    try:
        shelf.append_journal(b"{}\\n")
    except StoreError as refused:
        print("forked from" if "forked from" in str(refused) else refused)
    try:
        print("child reads", store.read_shelf(shelf.session).open(id).read(0, 9))
        store.open_shelf(handles.new())
    except StoreError as refused:
        print("cannot" if "use the store only after forking" in str(refused) else refused)
    sys.exit()
os.waitpid(child, 0)
print(f"parent reads {shelf.open(id).read(0, 9)}, live: {store.label(shelf.session).live}")
"""


class Kind:
    """One kind of store, empty. Each call is another worker."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url, self.tenant = name, url, handles.new()
        self.made: list[Store] = []

    def __call__(self, **options: Any) -> Any:
        names: dict[str, Any] = {}
        exec(OPENINGS[self.name].splitlines()[0], names)  # noqa: S102  # imported only where the package is
        tenant = {"tenant": self.tenant} if self.name == "postgresql" else {}
        self.made.append(names["Shared"](self.url, **tenant, **options))
        return self.made[-1]

    def of_other_tenant(self) -> Any:
        """A store in the same database or bucket, with another tenant or prefix."""
        other = Kind(self.name, self.url if self.name == "postgresql" else f"{self.url}-other")
        other.made = self.made
        return other()

    def command(self, code: str) -> list[str]:
        return [sys.executable, "-c", code.replace("OPEN", OPENINGS[self.name]), self.url, self.tenant, str(LEASE)]


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) for name in OPENINGS])
def make(request: pytest.FixtureRequest) -> Iterator[Kind]:
    fixture = {"postgresql": "postgres_server", "s3": "s3_url", "azure": "azure_url"}[request.param]
    kind = Kind(request.param, request.getfixturevalue(fixture))
    yield kind
    for store in kind.made:
        store.close()


def stored(shelf, data: bytes) -> str:
    writer = shelf.create(id := handles.new())
    writer.append(data)
    writer.commit()
    return id


def suspend(store, seen_by, session: str) -> None:
    """As if its process had been suspended: it renews its lease no more, until another worker takes it for dead."""
    store.run.stop_renewing()
    wait_until(lambda: not seen_by.label(session).live)


def test_another_worker_reads_what_one_has_stored_and_follows_what_it_writes(make):
    first, second = make(), make()
    shelf = first.open_shelf(handles.new(), retention="keep")
    id = stored(shelf, b"from the first")
    writer = shelf.create(running := handles.new())
    writer.append(b"so ")
    elsewhere = second.read_shelf(shelf.session)
    assert elsewhere.open(id).read(0, 99) == b"from the first"
    reader = elsewhere.open(running)
    assert reader.read(0, 99) == b"so "
    writer.append(b"far")
    assert (reader.size, bytes(reader.buffer())) == (6, b"so far")
    writer.commit()
    assert second.label(shelf.session).live


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0, 60, -60])
def test_a_killed_worker_loses_its_session_when_its_lease_ends_and_nothing_acknowledged(make, skew: int):
    with subprocess.Popen(
        make.command(skew_clock(skew) + WORKER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        session, id, half = worker.stdout.readline().split()
        store = make(lease_seconds=LEASE)
        with pytest.raises(NameInUse):
            store.open_shelf(handles.new(), name="research", retention="keep")
        assert store.expire(KeepLimits(1, 1_000_000)).outputs == []
        worker.send_signal(signal.SIGKILL)
        wait_until(lambda: not store.label(session).live)
    shelf = store.open_shelf(handles.new(), name="research", retention="keep")
    assert shelf.session == session
    assert shelf.open(id).read(0, 99) == b"acknowledged"
    assert shelf.remove_unrecorded({id}) == len(b"half")
    with pytest.raises(UnknownHandle):
        shelf.open(half)
    assert b'{"wrote":"%s"}\n' % id.encode() in list(shelf.journal())


@pytest.mark.slow
def test_who_lost_a_session_cannot_write_and_is_told(make):
    late, quick = make(lease_seconds=LEASE), make(lease_seconds=LEASE)
    shelf = late.open_shelf(handles.new(), name="contested", retention="keep")
    writer = shelf.create(half := handles.new())
    writer.append(b"half")
    suspend(late, quick, shelf.session)
    taken = quick.open_shelf(handles.new(), name="contested", retention="keep")
    assert taken.session == shelf.session
    for call in (lambda: writer.append(b"more"), writer.commit, lambda: shelf.append_journal(b"{}\n")):
        with pytest.raises(StoreError, match=f"Session {shelf.session} can no longer write: .* Open the session again"):
            call()
    assert taken.open(half).read(0, 99) == b"half"
    shelf.close()
    assert quick.label(taken.session).live
    id = stored(taken, b"mine now")
    assert late.read_shelf(taken.session).open(id).read(0, 99) == b"mine now"


@pytest.mark.promise("nothing-lost")
def test_an_output_that_was_swept_while_its_writer_was_out_of_touch_is_not_acknowledged(make):
    late, quick = make(lease_seconds=LEASE), make(lease_seconds=LEASE)
    shelf = late.open_shelf(handles.new(), retention="keep")
    writer = shelf.create(id := handles.new())
    writer.append(b"first ")
    suspend(late, quick, shelf.session)
    quick.expire(KeepLimits(7, 1_000_000))
    writer.append(b"second")
    if make.name == "postgresql":  # nothing is swept there before its hold is gone
        writer.commit()
        assert quick.read_shelf(shelf.session).open(id).read(0, 99) == b"first second"
    else:
        with pytest.raises(StoreError, match=r"was removed while it was being written\. Call the tool again"):
            writer.commit()
        with pytest.raises(UnknownHandle):
            quick.read_shelf(shelf.session).open(id)
    assert shelf.open(stored(shelf, b"another")).read(0, 99) == b"another"


def test_a_forked_child_leaves_its_parents_session_alone(make):
    done = subprocess.run(make.command(FORKING), capture_output=True, text=True, timeout=PATIENCE, check=True)
    *child, parent = done.stdout.splitlines()
    assert parent == "parent reads b'mine', live: True"
    # The library for buckets cannot be used in a child at all, and would never answer.
    assert child == ["forked from", "child reads b'mine'" if make.name == "postgresql" else "cannot"]


def test_of_many_workers_that_open_one_name_one_gets_it(make):
    stores = [make() for _ in range(6)]
    start = threading.Barrier(6, timeout=PATIENCE)

    def open_it(store: Store) -> str:
        start.wait()
        try:
            return store.open_shelf(handles.new(), name="one", retention="keep").session
        except NameInUse:
            return ""

    with ThreadPoolExecutor(6) as pool:
        opened = list(filter(None, pool.map(open_it, stores)))
    assert len(opened) == 1


def test_two_workers_that_expire_at_once_remove_each_output_once(make):
    stores = [make() for _ in range(2)]
    shelf = stores[0].open_shelf(handles.new(), retention="keep")
    ids = {stored(shelf, b"x") for _ in range(30)}
    with ThreadPoolExecutor(2) as pool:
        removed = [expired.outputs for expired in pool.map(lambda store: store.expire(KeepLimits(0, 1)), stores)]
    assert sorted([*removed[0], *removed[1]]) == sorted(ids)


def test_an_output_of_several_parts_reads_back_in_ranges(make):
    shelf = make().open_shelf(handles.new())
    data = bytes(range(256)) * 13_000
    reader = shelf.open(id := stored(shelf, data))
    assert reader.size == len(data)
    for start in (0, 1_048_575, 1_048_576, 2_000_000, len(data) - 3):
        assert reader.read(start, start + 70_000) == data[start : start + 70_000]
    assert bytes(reader.buffer()) == data
    assert make().read_shelf(shelf.session).open(id).buffer()[-5:] == data[-5:]


@pytest.mark.promise("nobody-elses")
def test_another_tenant_finds_lists_counts_and_removes_nothing(make):
    mine, theirs = make(), make.of_other_tenant()
    limits = KeepLimits(7, 10_000)
    shelf = mine.open_shelf(handles.new(), name="ann/notes", retention="keep", limits=limits)
    id = stored(shelf, b"x" * 9_000)
    shelf.close()
    for call in (theirs.read_shelf, theirs.label, theirs.remove_shelf, theirs.empty_shelf):
        with pytest.raises(UnknownHandle):
            call(shelf.session)
    assert theirs.shelves() == theirs.shelves(family="ann") == theirs.shelves(family="ann/notes") == []
    other = theirs.open_shelf(handles.new(), name="ann/notes", retention="keep", limits=limits)
    assert other.session != shelf.session
    with pytest.raises(UnknownHandle):
        other.open(id)
    stored(other, b"y" * 9_000)  # the limit is each tenant's own
    expired = theirs.expire(KeepLimits(0, 1))
    assert (expired.sessions, len(expired.outputs)) == ([], 1)
    assert [label.session for label in theirs.shelves()] == [other.session]
    assert mine.read_shelf(shelf.session).open(id).size == 9_000
