"""Short names of outputs: valid wherever a handle is, for those who may read the output, and never for two."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

from overspill import Session, Settings, handles
from overspill.errors import AmbiguousName, UnknownHandle
from overspill.gate.kept import OutputNames
from overspill.retrieval.archive import Archive
from overspill.settings.keys import PresetName
from overspill.store.files.store import FileStore
from overspill.store.protocols import Store
from overspill.text import tokens
from overspill.types import Reply

LARGE = "one line of many\n" * 5000


async def reply_of(session: Session, text: str = LARGE) -> Reply:
    return await session.call("read_file", {"path": "a.txt"}, lambda path: text)


async def test_a_stored_output_has_a_short_name_that_the_reply_shows():
    async with Session() as session:
        reply = await reply_of(session)
    assert reply.kept is not None
    assert re.fullmatch(r"out_[0-9a-z]{6}", reply.kept.name)
    assert reply.kept.name in reply.text
    assert reply.kept.handle not in reply.text
    assert reply.kept.artifact_id not in reply.text


def test_a_name_is_valid_in_sql():
    names = [handles.name(handles.new()) for _ in range(100)]
    with sqlite3.connect(":memory:") as database:
        for name in set(names):
            database.execute(f"CREATE TABLE {name} (a)")
    database.close()


async def test_the_message_without_a_preview_takes_at_most_60_tokens():
    async with Session(Settings(previewChars=0)) as session:
        for number in range(50):
            reply = await reply_of(session, f"{number} {LARGE}")
            assert reply.kept is not None
            assert tokens.count(reply.text).tokens <= 60


@pytest.mark.parametrize("preset", ["overspill", "tool_output", "artifacts", "slow"])
async def test_every_way_to_read_takes_a_name_in_every_preset(preset: PresetName):
    async with Session(Settings(preset=preset)) as session:
        kept = await session.keep(LARGE + "needle\n", "log")
        asked = f" `{kept.name.upper()}`\n"
        for tool, args in (
            ("get_tool_output", {"id": asked, "mode": "grep", "pattern": "needle"}),
            ("get_tool_output", {"id": asked, "mode": "slice", "slice": {"anchor": "needle"}}),
            ("get_artifact", {"id": asked, "lines": "5001-5001"}),
            ("tool_output", {"handle": asked, "extract": "needle", "mode": "truncate"}),
        ):
            reply = await session.invoke(tool, args)
            assert not reply.is_error
            assert "needle" in reply.text
        with session.open(kept.name) as stored:
            assert stored.kept == kept
        found = await session.extract(kept.name, "needle")
        assert "needle" in found.text
        shown = await session.call("count", {"text": f"{{{{output:{kept.name}#L5001-5001}}}}"}, lambda text: text)
        assert shown.text == "needle\n"
        assert session.counters.refs == 1


async def test_the_calls_that_continue_an_answer_use_the_name_in_the_default_preset():
    async with Session() as session:
        kept = await session.keep(LARGE, "log")
        for tool in ("get_tool_output", "get_artifact"):
            reply = await session.invoke(tool, {"id": kept.handle, **({"mode": "slice"} if tool == "get_tool_output" else {})})
            assert f'Next: {tool}(id="{kept.name}", ' in reply.text


@pytest.mark.promise("nobody-elses")
async def test_a_name_of_another_session_is_unknown():
    async with Session() as session, Session() as other:
        kept = await session.keep(LARGE, "log")
        with pytest.raises(UnknownHandle):
            other.open(kept.name)
        reply = await other.invoke("get_tool_output", {"id": kept.name, "mode": "raw"})
        assert (reply.is_error, reply.text) == (True, f"Unknown tool ID: {kept.name}")


def with_equal_names() -> tuple[str, str]:
    """Two ids that differ only in bits that a name of six characters does not show."""
    first = handles.new()
    return first, first[:24] + ("0" if first[24] != "0" else "1") + first[25:]


def test_a_name_that_is_taken_makes_the_next_one_longer():
    one, two = with_equal_names()
    assert handles.name(one) == handles.name(two)
    names = OutputNames()
    assert names.give(one) == names.give(one) == handles.name(one)
    assert names.give(two).startswith(names.give(one))
    assert len(names.give(two)) > len(names.give(one))
    assert names.find(names.give(one)) == {one}
    assert names.find(names.give(two)) == {two}


def test_no_name_of_the_family_is_given_again():
    one, two = with_equal_names()
    names = OutputNames(lambda: [handles.name(one)])
    assert names.give(two) != handles.name(one)


async def test_a_family_reads_by_name_what_an_earlier_session_stored_and_avoids_its_names(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(family="proxy", store=store) as session:
        kept = await session.keep(LARGE, "log")
    async with Session(family="proxy", store=store) as later:
        with later.open(kept.name) as stored:
            assert stored.text() == LARGE
        # The name is avoided: an output whose id spells the same name gets a longer one.
        twin = kept.id[:24] + ("0" if kept.id[24] != "0" else "1") + kept.id[25:]
        assert later._life.parts.gate.names.give(twin) != kept.name
    async with Session(family="other", store=store) as stranger:
        with pytest.raises(UnknownHandle):
            stranger.open(kept.name)
    store.close()


async def store_twins(store: Store, family: str) -> list[str]:
    """Two ended sessions, each with an output of the same name, as two that were live together can leave behind."""
    one, two = with_equal_names()
    stored: list[str] = []
    for id in (one, two):
        shelf = store.open_shelf(handles.new(), name=f"{family}/{id}", retention="keep")
        writer = shelf.create(id)
        writer.append(b"x")
        writer.commit()
        kept = {
            "session": shelf.session, "id": id, "tool": "log", "reason": "size_cap", "sha256": "", "created_ms": 1,
            "size": {"bytes": 1, "chars": 1, "lines": 1, "tokens": 1},
        }  # fmt: skip
        shelf.append_journal(msgspec.json.encode({"event": "kept", "t": 1, "kept": kept}) + b"\n")
        shelf.close()
        stored.append(handles.handle(shelf.session, id))
    return stored


async def test_a_name_that_two_outputs_have_is_an_error_that_lists_both(tmp_path: Path):
    store = FileStore(tmp_path)
    stored = await store_twins(store, "proxy")
    name = handles.name(stored[0][-36:])
    async with Session(family="proxy", store=store) as session:
        with pytest.raises(AmbiguousName) as raised:
            session.open(name)
        replies = [
            (await session.invoke("get_tool_output", {"id": name, "mode": "raw"})).text,
            (await session.invoke("get_artifact", {"id": name})).text,
            (await session.invoke("tool_output", {"handle": name, "extract": "x"})).text,
            str(raised.value),
        ]
        with session.open(stored[0]) as one:
            assert one.text() == "x"
    with pytest.raises(AmbiguousName) as raised:
        Archive([store]).find(name)
    for text in (*replies, str(raised.value)):
        assert all(handle in text for handle in stored)
    store.close()


async def test_the_commands_find_an_output_by_its_name(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(name="kept", store=store) as session:
        kept = await session.keep(LARGE, "log")
    assert Archive([store]).find(kept.name).kept == kept
    async with Session(name="kept", store=store) as again:
        assert again.open(kept.name).kept == kept
    store.close()


async def test_a_damaged_journal_costs_a_session_no_more_than_the_damaged_line(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(name="kept", store=store) as session:
        kept = await session.keep(LARGE, "log")
        shelf = session._life.parts.shelf
        for id, chars in (("no uuid", 6), (handles.new(), 1 << 60)):
            broken = msgspec.structs.replace(kept, id=id, name_chars=chars)
            shelf.append_journal(msgspec.json.encode({"event": "kept", "t": 1, "kept": broken}) + b"\n")
    async with Session(name="kept", store=store) as again:
        assert again.open(kept.name).kept == kept
    store.close()
