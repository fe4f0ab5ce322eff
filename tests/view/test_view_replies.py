"""What the pages show of the replies that a model was given."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from viewers import Client, output_path, run_apart, running_viewer

from overspill import handles
from overspill.record.events import (
    Entry,
    OutputExtracted,
    OutputRetrieved,
    OutputStored,
    RecordedReply,
    TextShown,
    ToolCalled,
    encode_events,
)
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.store.protocols import ShelfLabel
from overspill.types import Kept, Reply, Size
from overspill.view.library import find_answer
from overspill.view.records import SessionRecord, plot_context

HX = {"HX-Request": "true"}
HOSTILE_PLACES = [RecordedReply(handles.new(), *place) for place in ((-1, 9), (0, -1), (0, 1 << 40), (1 << 70, 1 << 70))]


def record(root: Path, *outputs: str, setting: str = "replies") -> tuple[str, list[Reply]]:
    async def run() -> tuple[str, list[Reply]]:
        store = FileStore(root)
        async with Session(Settings(retention="keep", record=setting), store=store, preload=False) as session:
            replies = [await session.call("fetch", {}, lambda text=text: text) for text in outputs]
            id = session.id
        store.close()
        return id, replies

    return run_apart(run)


def find_links(client: Client, session: str, place: str = "reply") -> list[str]:
    """The addresses that the details of the timeline load, below the viewer's folder."""
    page = client.get(f"/session/{session}").text
    found = re.findall(r'<details[^>]* hx-get="([^"]+)"', page)
    return [each.removeprefix(client.root) for each in found if f"/{place}" in each]


def read_pre(page: str) -> str:
    return unescape("".join(re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)))


def test_the_timeline_shows_each_reply_word_for_word(tmp_path: Path):
    session, replies = record(tmp_path, "small & <b>bold</b>\n  indented", "row\n" * 9_000)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        links = find_links(client, session)
        assert len(links) == 2
        for link, reply in zip(links, replies, strict=True):
            part, page = client.get(link, **HX), client.get(link)
            assert "<html" not in part.text
            assert "<html" in page.text
            for shown in (part, page):
                assert read_pre(shown.text) == reply.text
                assert "Word for word" in shown.words


def test_the_page_of_an_output_shows_what_was_seen_of_it_first(tmp_path: Path):
    _, replies = record(tmp_path, "row\n" * 9_000)
    kept = replies[0].kept
    assert kept is not None
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        page = client.get(output_path(kept)).text
        link = re.search(r'<details class="saw" hx-get="([^"]+)"', page)
        assert link is not None
        assert read_pre(client.get(link[1].removeprefix(client.root)).text) == replies[0].text
    assert "(rebuilt)" not in page


def test_without_a_record_only_the_reply_to_a_kept_output_is_rebuilt_and_marked(tmp_path: Path):
    session, replies = record(tmp_path, "small", "row\n" * 9_000, setting="figures")
    kept = replies[1].kept
    assert kept is not None
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        assert find_links(client, session) == [f"{output_path(kept)}/reply"]
        assert client.get(f"/session/{session}").words.count("What the model saw (rebuilt)") == 1
        answer = client.get(f"{output_path(kept)}/reply", **HX)
    assert "not on record" in answer.words
    assert kept.name in read_pre(answer.text)


def test_a_long_reply_is_shown_in_parts_that_lose_nothing(tmp_path: Path):
    whole = "".join(f"line {number} größe\n" for number in range(20_000))

    async def run() -> str:
        store = FileStore(tmp_path)
        settings = Settings(retention="keep", record="replies", truncation={"overrides": {"fetch": {"off": True}}})
        async with Session(settings, store=store, preload=False) as session:
            await session.call("fetch", {}, lambda: whole)
            id = session.id
        store.close()
        return id

    session = run_apart(run)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        [link] = find_links(client, session)
        shown = ""
        while link:
            part = client.get(link, **HX).text
            shown += read_pre(part)
            more = re.search(r'hx-get="([^"]+from=\d+)"', part)
            link = more[1].removeprefix(client.root) if more else ""
    assert [len(shown), shown == whole] == [len(whole), True]  # a comparison that fails would describe megabytes


@pytest.mark.parametrize("is_part", [True, False])
def test_a_reply_that_is_gone_is_shown_as_gone(tmp_path: Path, is_part: bool):
    session, _ = record(tmp_path, "small")
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        [link] = find_links(client, session)
        [stored] = tmp_path.rglob(link.split("/")[-2])
        stored.unlink()
        answer = client.get(link, **(HX if is_part else {}))
    assert "no longer stored" in answer.words
    assert answer.status == (200 if is_part else 404)


@pytest.mark.parametrize("id", ["{output}", "../journal", "journal.jsonl", "not-an-id", "0" * 2_000])
def test_only_what_the_journal_calls_a_reply_is_opened_as_one(tmp_path: Path, id: str):
    session, replies = record(tmp_path, "secret\n" * 9_000)
    kept = replies[0].kept
    assert kept is not None
    with running_viewer(tmp_path) as viewer:
        answer = Client(viewer).enter().get(f"/reply/{session}/{id.format(output=kept.id)}/0")
    assert answer.status in (400, 404)
    assert "secret" not in answer.text


def test_a_hostile_journal_makes_no_link_of_what_is_no_id(tmp_path: Path):
    async def run() -> Kept:
        store = FileStore(tmp_path)
        async with Session(Settings(retention="keep"), store=store, preload=False) as session:
            await session.call("fetch", {}, lambda: "row\n" * 9_000)
            [kept] = session.kept()
            for bad in (RecordedReply('"><img src=x onerror=alert(1)>', 0, 9), *HOSTILE_PLACES):
                session.note(ToolCalled(1, "evil", id=kept.id, reply=bad))
            session.note(ToolCalled(1, "sound", reply=RecordedReply(handles.new(), 0, 9, 3)))
        store.close()
        return kept

    kept = run_apart(run)
    assert b"onerror" in encode_events([ToolCalled(1, "evil", reply=RecordedReply("onerror", 0, 9))])
    with running_viewer(tmp_path) as viewer:
        page = Client(viewer).enter().get(f"/session/{kept.session}")
    assert "onerror" not in page.text
    assert page.text.count('class="saw"') == 2
    assert "not recorded 3 blocks other than text" in page.words


def test_the_page_of_quotes_shows_the_whole_answer(tmp_path: Path):
    async def run() -> tuple[str, list[str]]:
        store = FileStore(tmp_path)
        async with Session(Settings(retention="keep", record="replies"), store=store, preload=False) as session:
            await session.call("fetch", {}, lambda: "".join(f"payment {number} ok\n" for number in range(5_000)))
            [kept] = session.kept()
            answers = [
                (await session.invoke("tool_output", {"handle": kept.name, "extract": f"payment {number}"})).text
                for number in (77, 3_131)
            ]
            id = session.id
        store.close()
        return id, answers

    session, answers = run_apart(run)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        links = re.findall(r'href="[^"]*(/citation/[^"]+)"', client.get(f"/session/{session}").text)
        pages = [client.get(link).text for link in links]
        found = [re.findall(r'<details class="saw" open hx-get="([^"]+)"', page) for page in pages]
        shown = [[read_pre(client.get(each.removeprefix(client.root)).text) for each in both] for both in found]
    assert [answer for _, answer in shown] == answers
    assert [json.loads(question)["extract"] for question, _ in shown] == ["payment 77", "payment 3131"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_answer_that_could_belong_to_another_question_is_not_shown(at_once: int):
    id, reply = handles.new(), RecordedReply(handles.new(), 0, 9)
    asked = [OutputExtracted(1, f"op{number}", id, "tool_output", "auto") for number in range(at_once)]
    answered = [OutputRetrieved(2, "tool_output", "auto", id=id, reply=reply) for _ in asked]
    assert find_answer([*asked, *answered], "op0") == (answered[0] if at_once == 1 else None)


def test_what_a_turn_delivers_counts_as_shown_in_every_figure():
    session, id = handles.new(), handles.new()
    kept = Kept(session, id, "report", "background", Size(8_000, 8_000, 10, 2_000), "ab", 1)
    events: list[Entry] = [
        ToolCalled(1, "report", chars_out=400),
        OutputStored(2, kept),
        TextShown(3, "notice", 4_000),
        TextShown(4, "output", 800, id),
    ]
    record = SessionRecord(ShelfLabel(session, live=False))
    record.read(encode_events(events).splitlines(keepends=True))
    [saved] = record.savings.values()
    last = plot_context(events)[-1]
    assert (saved.shown_tokens, record.counters.bill.entered) == (200, 300)
    assert (last.entered, last.kept_out) == (300, 1_800)
