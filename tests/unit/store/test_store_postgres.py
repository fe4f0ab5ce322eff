"""What only a store on a server has to promise: leases, tenants, a server that is away, and passwords that nobody sees."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest
from store_servers import Relay

from overspill import handles
from overspill.errors import BadRequest, NameInUse, SettingsError, StoreError, UnknownHandle
from overspill.store.open import open_store
from overspill.store.protocols import KeepLimits

psycopg = pytest.importorskip("psycopg")

from overspill.store.postgres.store import PostgresStore  # noqa: E402

PASSWORD = "s3cr3t-w0rd"  # noqa: S105
PATIENCE = 60
WORKER = """
import sys
from overspill import handles
from overspill.store.postgres.store import PostgresStore

store = PostgresStore(sys.argv[1], tenant=sys.argv[2], lease_seconds=float(sys.argv[3]))
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
from overspill.store.postgres.store import PostgresStore

store = PostgresStore(sys.argv[1], tenant=sys.argv[2])
shelf = store.open_shelf(handles.new(), retention="process")
writer = shelf.create(id := handles.new())
writer.append(b"mine")
writer.commit()
if not (child := os.fork()):
    try:
        shelf.append_journal(b"{}\\n")
    except StoreError as refused:
        print("forked from" if "forked from" in str(refused) else refused)
    print("child reads", store.read_shelf(shelf.session).open(id).read(0, 9))
    store.open_shelf(handles.new())
    sys.exit()
os.waitpid(child, 0)
print(f"parent reads {shelf.open(id).read(0, 9)}, live: {store.label(shelf.session).live}")
"""


@pytest.fixture
def tenant() -> str:
    return handles.new()


@pytest.fixture
def make(postgres_server: str, tenant: str) -> Iterator:
    made: list[PostgresStore] = []

    def new(url: str = postgres_server, **options) -> PostgresStore:
        made.append(PostgresStore(url, **{"tenant": tenant, **options}))
        return made[-1]

    yield new
    for store in made:
        store.close()


@pytest.fixture
def relay(postgres_server: str) -> Iterator[Relay]:
    folder = parse_qs(urlsplit(postgres_server).query)["host"][0]
    relay = Relay(socket.AF_UNIX, f"{folder}/.s.PGSQL.5432")
    yield relay
    relay.pass_on()
    relay.stop()


def url_of(relay: Relay) -> str:
    return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{relay.port}/postgres?sslmode=disable"


def stored(shelf, data: bytes) -> str:
    writer = shelf.create(id := handles.new())
    writer.append(data)
    writer.commit()
    return id


def wait_until(holds) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


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


def test_another_tenant_finds_nothing_counts_nothing_and_removes_nothing(make):
    mine, theirs = make(), make(tenant=handles.new())
    shelf = mine.open_shelf(handles.new(), name="shared name", retention="keep")
    id = stored(shelf, b"x" * 1000)
    shelf.close()
    for call in (theirs.read_shelf, theirs.label, theirs.remove_shelf, theirs.empty_shelf):
        with pytest.raises(UnknownHandle):
            call(shelf.session)
    other = theirs.open_shelf(handles.new(), name="shared name", retention="keep")
    assert other.session != shelf.session
    with pytest.raises(UnknownHandle):
        other.open(id)
    expired = theirs.expire(KeepLimits(0, 1))
    assert (expired.sessions, expired.outputs) == ([], [])
    assert expired.bytes < 500
    assert [label.session for label in theirs.shelves()] == [other.session]
    assert mine.read_shelf(shelf.session).open(id).size == 1000


def test_a_killed_worker_loses_its_session_when_its_lease_ends_and_nothing_acknowledged(make, postgres_server, tenant):
    command = [sys.executable, "-c", WORKER, postgres_server, tenant, "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        session, id, half = worker.stdout.readline().split()
        store = make(lease_seconds=0.5)
        with pytest.raises(NameInUse):
            store.open_shelf(handles.new(), name="research", retention="keep")
        worker.send_signal(signal.SIGKILL)
        wait_until(lambda: not store.label(session).live)
    shelf = store.open_shelf(handles.new(), name="research", retention="keep")
    assert shelf.session == session
    assert shelf.open(id).read(0, 99) == b"acknowledged"
    assert shelf.remove_unrecorded({id}) == len(b"half")
    with pytest.raises(UnknownHandle):
        shelf.open(half)
    assert b'{"wrote":"%s"}\n' % id.encode() in list(shelf.journal())


def test_who_lost_a_session_cannot_write_and_is_told(make, postgres_server):
    late, quick = make(lease_seconds=0.2), make(lease_seconds=0.2)
    shelf = late.open_shelf(handles.new(), name="contested", retention="keep")
    writer = shelf.create(half := handles.new())
    writer.append(b"half")
    suspend(late, postgres_server)
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


def suspend(store: PostgresStore, url: str) -> None:
    """As if its process had been suspended for an hour: its lease ran out long ago, and it renews no more."""
    run = store._run
    assert run is not None
    run._stop.set()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE overspill.runs SET until = now() - interval '1 hour' WHERE run = %s", [run.id])


def test_what_a_dead_worker_did_not_mean_to_keep_is_removed_and_what_it_kept_stays(make, postgres_server):
    dead = make(lease_seconds=60)
    gone, kept = (dead.open_shelf(handles.new(), retention=kind) for kind in ("process", "keep"))
    id = stored(kept, b"kept")
    suspend(dead, postgres_server)
    store = make(remove_after_seconds=0)
    store.open_shelf(other := handles.new())
    assert {label.session for label in store.shelves()} == {kept.session, other}
    assert store.read_shelf(kept.session).open(id).read(0, 9) == b"kept"
    assert gone.session not in {label.session for label in store.shelves()}


def test_a_forked_child_leaves_its_parents_session_alone(postgres_server, tenant):
    command = [sys.executable, "-c", FORKING, postgres_server, tenant]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.splitlines() == ["forked from", "child reads b'mine'", "parent reads b'mine', live: True"]


def test_of_many_workers_that_open_one_name_one_gets_it(make):
    stores = [make() for _ in range(6)]
    start = threading.Barrier(6, timeout=PATIENCE)

    def open_it(store: PostgresStore) -> str:
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


def test_an_output_larger_than_a_row_reads_back_in_ranges(make):
    shelf = make().open_shelf(handles.new())
    data = bytes(range(256)) * 13_000
    reader = shelf.open(stored(shelf, data))
    assert reader.size == len(data)
    for start in (0, 1_048_575, 1_048_576, 2_000_000, len(data) - 3):
        assert reader.read(start, start + 70_000) == data[start : start + 70_000]
    assert bytes(reader.buffer()) == data
    assert make().read_shelf(shelf.session).open(reader._key["id"]).buffer()[-5:] == data[-5:]


def test_a_server_that_is_away_is_said_to_be_and_works_again_later(make, relay):
    store = make(url_of(relay))
    shelf = store.open_shelf(handles.new(), retention="keep")
    id = stored(shelf, b"before")
    relay.stop()
    writer = shelf.create(handles.new())
    for call in (lambda: shelf.open(id), lambda: writer.append(b"x"), store.shelves, lambda: shelf.append_journal(b"{}\n")):
        with pytest.raises(StoreError, match=r"does not answer .*Nothing that was stored is lost\. Try again"):
            call()
    assert writer.size == 0
    relay.start_again()
    wait_until(lambda: _works(store))
    assert shelf.open(id).read(0, 99) == b"before"
    writer.append(b"after")
    writer.commit()
    assert len(list(shelf.journal())) == 1


def _works(store: PostgresStore) -> bool:
    try:
        store.shelves()
    except StoreError:
        return False
    return True


def test_a_connection_that_breaks_between_two_calls_is_not_noticed(make, relay):
    shelf = make(url_of(relay)).open_shelf(handles.new())
    id = stored(shelf, b"before")
    relay.break_connections()
    shelf.append_journal(b'{"n":1}\n')
    relay.break_connections()
    assert shelf.open(id).read(0, 99) == b"before"
    assert list(shelf.journal())[1:] == [b'{"n":1}\n']


def test_a_server_that_says_nothing_is_not_waited_for_long(make, relay):
    store = make(url_of(relay), answer_seconds=0.5)
    shelf = store.open_shelf(handles.new())
    relay.hang()
    with pytest.raises(StoreError, match="does not answer"):
        shelf.open(handles.new())


@pytest.mark.promise("nobody-elses")
def test_no_message_and_no_log_has_the_password(make, relay, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    url = url_of(relay)
    store = make(url)
    store.open_shelf(handles.new(), retention="keep").close()
    relay.stop()
    with pytest.raises(StoreError) as refused:
        store.shelves()
    shown = [str(refused.value), store.url, repr(store), caplog.text, *map(str, _causes(refused.value))]
    assert [text for text in shown if PASSWORD in text] == []
    assert "postgres:***@127.0.0.1" in store.url
    relay.start_again()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@host/db?nonsense=1",
        f"postgresql://me:{PASSWORD}%zz@host/db",
        f"mysql://me:{PASSWORD}@host/db",
        f"postgresql://me@[host/db?password={PASSWORD}",
        f"postgresql:me:{PASSWORD}@host/db",
        f"postgresql://me:{PASSWORD}\0@host/db",
        f"file://me:{PASSWORD}@host/db",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url: str):
    with pytest.raises(SettingsError) as refused:
        open_store(url)
    assert PASSWORD not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize("tenant", ["a\0b", "a\ud800b"])
def test_a_tenant_that_the_database_could_not_store_is_refused(tenant: str):
    with pytest.raises(BadRequest, match="cannot name a tenant"):
        PostgresStore("postgresql://me@127.0.0.1/db", tenant=tenant)


def test_tables_of_another_version_are_left_alone(postgres_url: str):
    PostgresStore(postgres_url).shelves()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE overspill.version SET version = 99")
    with pytest.raises(StoreError, match="its tables have version 99"):
        PostgresStore(postgres_url).shelves()


def test_many_workers_may_be_the_first(postgres_url: str):
    stores = [PostgresStore(postgres_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda store: store.shelves(), stores)) == [[]] * 4
    for store in stores:
        store.close()


def test_off_this_machine_a_connection_is_encrypted_unless_you_say_otherwise():
    assert PostgresStore("postgresql://db.example.com/x")._database._parameters["sslmode"] == "require"
    assert PostgresStore("postgresql://db.example.com/x?sslmode=disable")._database._parameters["sslmode"] == "disable"
    assert "sslmode" not in PostgresStore("postgresql://127.0.0.1/x")._database._parameters
