"""A journal that cannot be written for a while loses nothing: a session that opens later knows every stored output."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from overspill import Session, Settings
from overspill.record import events
from overspill.record.events import OutputStored

OUTPUT = "x" * 500


@contextmanager
def full_journal(store: Path, *, room: int = 0) -> Iterator[None]:
    """No file may grow past the journal's size and `room`: the journal is full, and outputs smaller than it still fit."""
    (journal,) = store.rglob("journal*")
    assert journal.stat().st_size > len(OUTPUT)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size + room, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def opened(store: Path) -> Session:
    return Session(Settings(storeDir=str(store)), name="report")


async def fill_journal(session: Session) -> None:
    for _ in range(20):
        await session.call("look", {}, lambda: "small")
    session.op_tree()  # writes what waits


@pytest.mark.promise("nothing-lost")
async def test_an_output_stored_while_the_journal_was_full_is_known_after_reopening(tmp_path: Path):
    async with opened(tmp_path) as session:
        await fill_journal(session)
        with full_journal(tmp_path):
            kept = await session.keep(OUTPUT)
            assert session.open(kept.handle).text() == OUTPUT
    async with opened(tmp_path) as session:
        assert session.open(kept.handle).text() == OUTPUT
        assert session.counters.kept == 1


async def test_a_full_journal_is_tried_again_without_another_event(tmp_path: Path):
    async with opened(tmp_path) as session:
        await fill_journal(session)
        with full_journal(tmp_path):
            await session.keep(OUTPUT)
        shelf = session._life.parts.shelf
        await until(lambda: any(isinstance(event, OutputStored) for event in events.decode_events(shelf.journal())))


async def test_what_the_journal_lacks_is_in_the_accounting_of_the_live_session(tmp_path: Path):
    async with opened(tmp_path) as session:
        await fill_journal(session)
        with full_journal(tmp_path):
            await session.keep(OUTPUT)
            await session.call("late", {}, lambda: "small")
            assert session.accounting()[-1]["command"] == "late"


async def test_no_event_is_read_twice_when_the_disk_was_full_in_the_middle_of_a_write(tmp_path: Path):
    async with opened(tmp_path) as session:
        await fill_journal(session)
        for n in range(5):
            await session.call(f"call{n}", {}, lambda: "small")
        with full_journal(tmp_path, room=300):
            commands = [entry["command"] for entry in session.accounting()]
        assert commands == [*["look"] * 20, *(f"call{n}" for n in range(5))]
