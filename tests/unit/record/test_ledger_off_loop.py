"""A ledger whose writes take long: others record meanwhile, nothing is lost, doubled or out of order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from overspill.errors import StoreError
from overspill.record import events
from overspill.record.events import JobChanged, ToolCalled
from overspill.record.ledger import MAX_UNWRITTEN_EVENTS, Ledger

PATIENCE = 60


class SlowJournal:
    """Each write waits until it may go on."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.began, self.may_end = Event(), Event()
        self.failure: StoreError | None = None

    def write(self, lines: bytes) -> None:
        self.began.set()
        assert self.may_end.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure
        self.lines += lines.splitlines(keepends=True)

    def read(self) -> Iterator[bytes]:
        return iter(list(self.lines))


def job(t: int) -> JobChanged:
    return JobChanged(t, f"job {t}", "crawl", "running")


@pytest.fixture
def journal() -> SlowJournal:
    return SlowJournal()


@pytest.fixture
def ledger(journal: SlowJournal) -> Ledger:
    return Ledger("a session", journal.write, journal.read, is_off_loop=True)


def test_recording_waits_for_no_write_and_says_when_it_is_settled(ledger: Ledger, journal: SlowJournal):
    asked: list[bool] = []
    ledger.schedule_flush = lambda: asked.append(True)
    ledger.record(job(1))
    assert (journal.lines, asked, ledger.recorded, ledger.settled) == ([], [True], 1, 0)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(ledger.flush)
        assert journal.began.wait(PATIENCE)
        ledger.record(job(2))
        ledger.record(ToolCalled(3, "add"))
        assert ledger.settled == 0
        assert ledger.counters.calls == 1
        journal.may_end.set()
        writing.result(PATIENCE)
    assert (ledger.recorded, ledger.settled) == (2, 1)
    ledger.flush()
    assert [event.t for event in events.decode_events(journal.read())] == [1, 2, 3]
    assert (ledger.recorded, ledger.settled) == (2, 2)


def test_a_call_that_is_recorded_during_a_write_is_written_by_a_later_one(ledger: Ledger, journal: SlowJournal):
    asked: list[bool] = []
    ledger.record(job(1))
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(ledger.flush)
        assert journal.began.wait(PATIENCE)
        ledger.schedule_flush = lambda: asked.append(True)
        ledger.record(ToolCalled(2, "add"))
        ledger.record(ToolCalled(3, "add"))
        journal.may_end.set()
        writing.result(PATIENCE)
    assert asked == [True]


def test_an_event_is_found_once_before_during_and_after_its_write(ledger: Ledger, journal: SlowJournal):
    def found() -> list[int]:
        return [event.t for event in ledger.events_about("job 1")]

    ledger.record(job(1))
    assert found() == [1]
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(ledger.flush)
        assert journal.began.wait(PATIENCE)
        assert found() == [1]
        journal.may_end.set()
        writing.result(PATIENCE)
    assert found() == [1]


def test_what_is_written_while_the_journal_is_read_is_found_once(ledger: Ledger, journal: SlowJournal):
    journal.may_end.set()
    ledger.record(job(1))
    found = ledger.events_about("job 1")
    reading, journal.read = journal.read, lambda: iter(journal.lines)
    ledger._read = lambda: (line for _ in (ledger.flush(),) for line in reading())
    assert [event.t for event in found] == [1]


def test_a_write_that_fails_loses_and_doubles_nothing(ledger: Ledger, journal: SlowJournal):
    journal.failure = StoreError("the server is away.")
    journal.may_end.set()
    ledger.record(job(1))
    ledger.flush()
    assert (ledger.failure, ledger.settled) == ("the server is away.", 1)
    ledger.record(job(2))
    journal.failure = None
    ledger.flush()
    assert [event.t for event in events.decode_events(journal.read())] == [1, 2]
    assert ledger.failure == ""


def test_what_is_being_written_is_not_dropped_meanwhile(ledger: Ledger, journal: SlowJournal):
    journal.failure = StoreError("the server is away.")
    journal.may_end.set()
    for t in range(MAX_UNWRITTEN_EVENTS):
        ledger.record(ToolCalled(t, "add"))
    ledger.flush()
    journal.failure = None
    journal.began.clear()
    journal.may_end.clear()
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(ledger.flush)
        assert journal.began.wait(PATIENCE)
        for t in range(MAX_UNWRITTEN_EVENTS, MAX_UNWRITTEN_EVENTS + 1000):
            ledger.record(ToolCalled(t, "add"))
        journal.may_end.set()
        writing.result(PATIENCE)
    ledger.flush()
    written = [event.t for event in events.decode_events(journal.read()) if isinstance(event, ToolCalled)]
    assert written[:MAX_UNWRITTEN_EVENTS] == list(range(MAX_UNWRITTEN_EVENTS))
    assert len(set(written)) == len(written)
    assert written == sorted(written)
    assert ledger.counters.calls == MAX_UNWRITTEN_EVENTS + 1000
