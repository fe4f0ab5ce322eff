"""`record: replies`: what a model was shown is stored word for word, goes with the session, and is nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from every_store import EVERY_STORE, MAKERS
from waiting import until

from overspill import handles
from overspill.errors import HandleError, StoreError
from overspill.gate.recorder import ReplyRecorder
from overspill.record.events import (
    MAX_REPLY_BYTES,
    Entry,
    JobChanged,
    OutputStored,
    RecordedReply,
    TextShown,
    decode_events,
)
from overspill.record.ledger import Ledger
from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.layers import resolve
from overspill.settings.reading import Layer
from overspill.store.files.store import FileStore
from overspill.store.protocols import Store
from overspill.types import Output, ToolCall

pytestmark = pytest.mark.anyio
RECORDING = Settings(record="replies", retention="process")
WORDS = "the words of a reply"


@pytest.fixture(params=EVERY_STORE)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    made = MAKERS[request.param](request)()
    yield made
    made.close()


def read_events(store: Store, session: str) -> list[Entry]:
    return list(decode_events(store.read_shelf(session).journal()))


def read_replies(store: Store, session: str) -> list[str]:
    found = [reply for event in read_events(store, session) if (reply := getattr(event, "reply", None))]
    return [read_reply(store, session, reply) for reply in found]


def read_reply(store: Store, session: str, reply: RecordedReply) -> str:
    with closing(Archive([store]).open_beside(session, reply.id)) as reader:
        return reader.read(reply.start, reply.start + reply.size).decode()


def list_stored(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if handles.is_uuid(path.name)]


async def test_every_reply_is_stored_word_for_word_in_every_store(store: Store):
    async with Session(RECORDING, store=store, preload=False) as session:
        small = await session.call("small", {}, lambda: f"{WORDS} ü\n")
        large = await session.call("large", {}, lambda: f"{WORDS}\n" * 5_000)
        assert large.kept is not None
        part = await session.invoke("get_tool_output", {"id": large.kept.name, "mode": "slice", "slice": {"length": 40}})
        wrong = await session.invoke("get_tool_output", {"id": "out_nothing", "mode": "raw"})
        id = session.id
    assert read_replies(store, id) == [small.text, large.text, part.text, wrong.text]
    assert WORDS in part.text
    assert WORDS.encode() not in b"".join(store.read_shelf(id).journal())


async def test_by_default_nothing_but_outputs_is_stored(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(Settings(), store=store, preload=False) as session:
        await session.call("small", {}, lambda: WORDS)
        await session.call("large", {}, lambda: "x" * 20_000)
        assert session.notice() == ""
        [kept] = session.kept()
        id = session.id
    assert read_replies(store, id) == []
    assert [path.name for path in list_stored(tmp_path)] == [kept.id]
    store.close()


async def test_replies_are_for_their_owner_only_and_go_with_the_session(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    store = FileStore(tmp_path)
    async with Session(Settings(record="replies", retention="session"), store=store, preload=False) as session:
        await session.call("small", {}, lambda: WORDS)
        await until(lambda: list_stored(tmp_path))
        [stored] = list_stored(tmp_path)
        assert stored.read_text() == WORDS
        assert stored.stat().st_mode & 0o777 == 0o600
    assert list_stored(tmp_path) == []
    assert WORDS not in caplog.text
    store.close()


async def test_what_a_turn_delivers_and_a_notice_says_is_recorded_too(tmp_path: Path):
    store = FileStore(tmp_path)
    settings = Settings(record="replies", asyncTimeoutSecs=0.01)
    in_background = anyio.Event()

    def observe(session: str, event: Entry) -> None:
        if isinstance(event, JobChanged):
            in_background.set()

    async with Session(settings, store=store, observers=[observe], preload=False) as session:

        async def slow() -> str:
            await in_background.wait()
            return "row\n" * 9_000

        session.tool(slow)
        [reply] = await session.turn([ToolCall("1", "slow")])
        assert reply.kept is not None
        id, notice = session.id, session.notice()
    shown = [event for event in read_events(store, id) if isinstance(event, TextShown)]
    assert [event.what for event in shown] == ["output", "notice"][: 1 + bool(notice)]
    assert shown[0].id == reply.kept.id
    assert read_replies(store, id)[1:] == [reply.text, *([notice] if notice else [])]
    store.close()


async def test_the_notice_that_a_model_is_shown_is_on_record(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(RECORDING, store=store, preload=False) as session:
        release = anyio.Event()
        await session.start("slow_report", {}, release.wait)
        notice = session.notice()
        release.set()
        await session.stop()
        news = session.news()
        id = session.id
    assert "slow_report" in notice
    assert "slow_report" in news
    assert read_replies(store, id) == [notice, news]
    store.close()


async def test_blocks_other_than_text_are_counted(tmp_path: Path):
    store = FileStore(tmp_path)
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    async with Session(RECORDING, store=store, preload=False) as session:
        await session.call("draw", {}, lambda: Output([{"type": "text", "text": "a picture"}, image, image]))
        id = session.id
    [reply] = [reply for event in read_events(store, id) if (reply := getattr(event, "reply", None))]
    assert reply.others == 2
    assert read_replies(store, id) == ["a picture"]
    store.close()


async def test_an_error_that_is_raised_to_the_host_is_not_taken_for_a_reply(tmp_path: Path):
    def fail() -> str:
        raise RuntimeError("no such table")

    store = FileStore(tmp_path)
    async with Session(RECORDING, store=store, preload=False) as session:
        with pytest.raises(RuntimeError):
            await session.call("describe", {}, fail, errors="raise")
        answer = await session.call("describe", {}, fail)
        id = session.id
    assert read_replies(store, id) == [answer.text]
    store.close()


async def test_no_tool_and_no_command_reads_a_recorded_reply(tmp_path: Path):
    store = FileStore(tmp_path)
    replies: list[RecordedReply | None] = []
    async with Session(
        RECORDING, store=store, observers=[lambda _, event: replies.append(getattr(event, "reply", None))]
    ) as session:
        await session.call("small", {}, lambda: WORDS)
        await until(lambda: list_stored(tmp_path))
        [reply] = filter(None, replies)
        handle = handles.handle(session.id, reply.id)
        for args in ({"id": handle, "mode": "raw"}, {"id": handles.artifact_id(reply.id), "mode": "raw"}):
            answer = await session.invoke("get_tool_output", args)
            assert answer.is_error
            assert WORDS not in answer.text
        with pytest.raises(HandleError):
            session.open(handle)
        archive = Archive([store])
        assert archive.items() == []
        with pytest.raises(HandleError):
            archive.find(handle)
    store.close()


async def test_a_session_that_is_opened_again_still_has_them(tmp_path: Path):
    texts: list[str] = []
    for number in range(2):
        store = FileStore(tmp_path)
        async with Session(RECORDING, store=store, name="research", preload=False) as session:
            texts.append((await session.call("small", {}, lambda number=number: f"{WORDS} {number}")).text)
            id = session.id
        store.close()
    assert read_replies(FileStore(tmp_path), id) == texts


async def test_a_session_of_a_family_stays_if_only_replies_are_in_it(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(RECORDING, store=store, family="client", preload=False) as session:
        await session.call("small", {}, lambda: WORDS)
        id = session.id
    assert read_replies(store, id) == [WORDS]
    async with Session(Settings(), store=store, family="client", preload=False) as session:
        await session.call("small", {}, lambda: WORDS)
    assert [label.session for label in store.shelves()] == [id]
    store.close()


async def test_a_full_store_costs_no_call_its_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    store = FileStore(tmp_path, run_bytes=100)
    async with Session(RECORDING, store=store, preload=False) as session:
        for _ in range(3):
            assert (await session.call("small", {}, lambda: WORDS * 10)).text == WORDS * 10
        id = session.id
    assert WORDS not in caplog.text
    assert caplog.text.count("Not all replies of session") == 1
    assert not any(isinstance(event, OutputStored) for event in read_events(store, id))
    assert list_stored(tmp_path) == []
    with pytest.raises((HandleError, StoreError)):
        read_replies(store, id)
    store.close()


def test_a_reply_that_would_take_too_much_memory_is_left_out_and_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    store = FileStore(tmp_path)
    shelf = store.open_shelf(handles.new())
    recorder = ReplyRecorder(shelf, Ledger(shelf.session, shelf.append_journal), str, is_on=True)
    assert recorder.add([{"type": "text", "text": "x" * (MAX_REPLY_BYTES + 1)}]) is None
    assert recorder.add([{"type": "text", "text": WORDS}]) is not None
    recorder.close()
    assert recorder.add([{"type": "text", "text": WORDS}]) is None
    assert [path.read_text() for path in list_stored(tmp_path)] == [WORDS]
    assert caplog.text.count("Not all replies of session") == 1
    store.close()


def test_only_you_can_turn_it_on(tmp_path: Path):
    for author in ("anyone", "agent"):
        layer = Layer("a file", {"record": "replies"}, author=author, forgiving=True)
        resolved = resolve(Settings, [layer])
        assert resolved.values["record",] == "figures"
        assert "record" in " ".join(resolved.warnings)
    assert Settings(record="replies").record == "replies"
