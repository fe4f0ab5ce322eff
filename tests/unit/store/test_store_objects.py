"""What only a store in a bucket has to promise: few objects for many events, bytes that go later, secrets that stay secret."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from store_servers import S3_KEYS, Relay
from waiting import wait_until

from overspill import handles
from overspill.errors import SettingsError, StoreError, StoreFull, UnknownHandle
from overspill.store.open import open_store

pytest.importorskip("obstore")

from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.names import BucketLease
from overspill.store.objects.shelf import ObjectJournal
from overspill.store.objects.store import ObjectStore
from overspill.store.protocols import KeepLimits

pytestmark = pytest.mark.slow  # starts a server

SECRET = S3_KEYS["AWS_SECRET_ACCESS_KEY"]


@pytest.fixture
def make(s3_url: str) -> Iterator:
    made: list[ObjectStore] = []

    def new(url: str = s3_url, **options) -> ObjectStore:
        made.append(ObjectStore(url, **options))
        return made[-1]

    yield new
    for store in made:
        store.close()


def stored(shelf, data: bytes) -> str:
    writer = shelf.create(id := handles.new())
    writer.append(data)
    writer.commit()
    return id


def keys_below(url: str, prefix: str) -> list[str]:
    return [item.key for item in Bucket(url).list(prefix)]


def test_many_events_become_few_objects_and_keep_their_order(make, s3_url):
    shelf = make().open_shelf(handles.new(), name="busy", retention="keep")
    lines = [b'{"n":%d}\n' % n for n in range(150)]
    for line in lines:
        shelf.append_journal(line)
    assert list(shelf.journal())[1:] == lines
    assert len(keys_below(s3_url, f"journal/{shelf.session}/")) == 2 + 150 % 64
    shelf.close()
    assert len(keys_below(s3_url, f"journal/{shelf.session}/")) == 3
    again = make().open_shelf(handles.new(), name="busy", retention="keep")
    assert list(again.journal())[1:] == lines


def test_events_that_were_put_together_count_once_even_if_the_worker_died_meanwhile(make, s3_url):
    shelf = make().open_shelf(handles.new(), retention="keep")
    written = ObjectJournal(bucket := Bucket(s3_url), shelf.session, "a-hold")
    written.append(b'{"n":1}\n')
    [single] = list(bucket.list(f"journal/{shelf.session}/"))
    written.append(b'{"n":2}\n')
    written.close()
    bucket.put(single.key, b'{"n":1}\n')  # as if it had not been deleted yet
    assert list(shelf.journal())[1:] == [b'{"n":1}\n', b'{"n":2}\n']


def test_the_bytes_of_a_removed_output_go_when_nobody_can_be_reading_them(make, s3_url):
    store = make()
    shelf = store.open_shelf(handles.new(), retention="keep")
    reader = shelf.open(id := stored(shelf, b"still here"))
    assert store.empty_shelf(shelf.session) == 1
    bucket = Bucket(s3_url)
    removal.empty_trash(bucket, time.time())
    assert reader.read(0, 99) == b"still here"
    removal.empty_trash(bucket, time.time() + 3600)
    assert keys_below(s3_url, f"data/{shelf.session}/") == keys_below(s3_url, "trash/") == []
    with pytest.raises(StoreError, match=r"has been removed from .* Call the tool again"):
        reader.read(0, 99)
    with pytest.raises(UnknownHandle):
        shelf.open(id)


def test_a_closed_store_leaves_nothing_that_was_not_kept(make, s3_url):
    store = make()
    for retention in ("session", "process"):
        session = handles.new()
        stored(store.open_shelf(session, name=f"family/{session}", retention=retention), b"x")
    for shelf in list(store._shelves.values()):
        shelf.close()
    store.close()
    assert keys_below(s3_url, "") == []


@pytest.mark.slow
def test_what_a_dead_worker_did_not_mean_to_keep_is_removed_and_what_it_kept_stays(make):
    dead = make(lease_seconds=1)
    gone, kept = (dead.open_shelf(handles.new(), retention=kind) for kind in ("process", "keep"))
    id = stored(kept, b"kept")
    dead.run.stop_renewing()

    def see() -> set[str]:
        return {label.session for label in make(lease_seconds=1, remove_after_seconds=4).shelves()}

    wait_until(lambda: gone.session not in see())
    assert make().read_shelf(kept.session).open(id).read(0, 9) == b"kept"


def test_a_worker_that_comes_back_after_it_was_cleared_away_holds_its_kept_session_again(make):
    late, other = make(lease_seconds=1), make(lease_seconds=1)
    shelf = late.open_shelf(handles.new(), retention="keep")
    late.run.stop_renewing()
    bucket = Bucket(late.url)
    wait_until(lambda: make(lease_seconds=1, remove_after_seconds=5).shelves() and not list(bucket.list("holds/")))
    writer = shelf.create(id := handles.new())
    writer.append(b"so far")
    assert other.label(shelf.session).live
    other.expire(KeepLimits(7, 1_000_000))
    writer.commit()
    assert other.read_shelf(shelf.session).open(id).read(0, 99) == b"so far"


def test_the_first_output_of_a_worker_does_not_wait_until_all_that_is_kept_was_measured_again(make, s3_server, monkeypatch):
    make().expire(KeepLimits(30, 1_000_000))  # which says how much is kept
    relay = Relay(socket.AF_INET, ("127.0.0.1", s3_server))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{relay.port}")
    relay.hang_at(b"%2Fopenings%2F")  # a list of all sessions
    with ThreadPoolExecutor(1) as pool:
        # Stricter limits, so that all has to be measured again.
        strict = make().open_shelf(handles.new(), name="b", retention="keep", limits=KeepLimits(7, 1_000))
        first = pool.submit(stored, strict, b"small")
        try:
            assert strict.open(first.result(20)).read(0, 99) == b"small"
            over = pool.submit(stored, strict, b"x" * 2_000)  # this waits, and is then over the limit
        finally:
            relay.pass_on()
        with pytest.raises(StoreFull):
            over.result(60)


@pytest.mark.parametrize("what", ["commit", "append", "journal"])
def test_a_write_that_arrives_after_another_worker_took_the_session_is_not_acknowledged(make, s3_server, monkeypatch, what: str):
    quick = make(lease_seconds=1)
    relay = Relay(socket.AF_INET, ("127.0.0.1", s3_server))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{relay.port}")
    shelf = make(lease_seconds=1).open_shelf(handles.new(), name="contested", retention="keep")
    writer = shelf.create(handles.new())
    writer.append(b"half")
    writes = {"commit": writer.commit, "append": lambda: writer.append(b"more"), "journal": lambda: shelf.append_journal(b"{}\n")}
    relay.hang()
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(writes[what])
        wait_until(lambda: not quick.label(shelf.session).live)
        taken = quick.open_shelf(handles.new(), name="contested", retention="keep")
        assert taken.session == shelf.session
        taken.remove_unrecorded(set())
        relay.pass_on()
        with pytest.raises(StoreError, match="can no longer write"):
            late.result(60)


def test_a_lease_that_runs_out_while_its_renewal_is_under_way_has_run_out(s3_server, s3_url, monkeypatch):
    relay = Relay(socket.AF_INET, ("127.0.0.1", s3_server))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{relay.port}")
    run = BucketLease(Bucket(s3_url), seconds=1)
    relay.hang()
    time.sleep(1.2)  # the renewal begins after a third of a second, so that it takes less than the time of the lease
    relay.pass_on()
    try:
        assert run.check_lease() >= 1
    finally:
        run.end()
        run.wait_for_renewal()


@pytest.mark.promise("nobody-elses")
@pytest.mark.slow
def test_a_service_that_is_away_is_said_to_be_without_secrets_and_works_again_later(make, s3_server, s3_url, monkeypatch):
    relay = Relay(socket.AF_INET, ("127.0.0.1", s3_server))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{relay.port}")
    store = make()
    shelf = store.open_shelf(handles.new(), retention="keep")
    id = stored(shelf, b"before")
    relay.stop()
    writer = shelf.create(handles.new())
    for call in (lambda: shelf.open(id), lambda: writer.append(b"x"), store.shelves, lambda: shelf.append_journal(b"{}\n")):
        with pytest.raises(
            StoreError, match=r"does not answer, or refuses .*Nothing that was stored is lost\. Try again"
        ) as away:
            call()
        assert SECRET not in str(away.value) + repr(store) + store.url
    assert writer.size == 0
    relay.start_again()
    assert shelf.open(id).read(0, 99) == b"before"
    writer.append(b"after")
    writer.commit()
    relay.stop()
    store.close()


def test_wrong_credentials_are_refused_and_not_shown(make, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", wrong := "wr0ng-k3y")
    with pytest.raises(StoreError, match="your credentials may use it") as refused:
        make().shelves()
    assert wrong not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:bucket",
        "s3://bucket?secret_access_key=s3cr3t",
        "az://container?sas=s3cr3t",
        "az:container?sas=s3cr3t",
        "s3://bucket/a#s3cr3t",
        "s3://key:s3cr3t@bucket/prefix",
        "s3://s3cr3t:key@bucket/prefix",
        "s3:s3cr3t:s3cr3t@bucket",
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str):
    with pytest.raises(SettingsError, match="Write s3://bucket/prefix") as refused:
        open_store(url)
    assert "s3cr3t" not in str(refused.value)
