"""What only a store on a server has to promise: leases, tenants, a server that is away, and passwords that nobody sees."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest
from store_servers import Relay
from waiting import wait_until

from overspill import handles
from overspill.errors import BadRequest, SettingsError, StoreError
from overspill.store.open import open_store

psycopg = pytest.importorskip("psycopg")

from overspill.store.postgres.store import PostgresStore  # noqa: E402

pytestmark = pytest.mark.slow  # starts a server

PASSWORD = "s3cr3t-w0rd"  # noqa: S105
PATIENCE = 60


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


def suspend(store: PostgresStore, url: str) -> None:
    """As if its process had been suspended for an hour: its lease ran out long ago, and it renews no more."""
    run = store.run
    run.stop_renewing()
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
        f"postgresql://me:a@{PASSWORD}@host/db",
        f"postgresql://me:a@127.0.0.1:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql://me:a/{PASSWORD}@host/db",
        f"postgresql://me:{PASSWORD}/a@host/db",
        f"postgresql://host:1/db?nonsense={PASSWORD}@{PASSWORD}",
        f"memory:me:{PASSWORD}@host",
        f"file://[me:{PASSWORD}@host",
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
