"""With `redact: {shown: on}`, a model reads marks in place of secrets, whichever way it asks."""

import base64
import gzip
import json
import random
import re
import string
from typing import Any

import anyio
import pytest

from overspill import ContextBudget, Output, Session, Settings, reading
from overspill.retrieval.archive import Archive
from overspill.store.memory import MemoryStore
from overspill.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SOURCE = random.Random(11)  # noqa: S311
SECRET = "".join(SOURCE.choices(string.ascii_letters + string.digits, k=24))
KEY = "\n".join("".join(SOURCE.choices(string.ascii_letters, k=12)) for _ in range(4))
"""Of several lines."""
NAMED = {"SERVICE_TOKEN": SECRET}
ON = Settings(redact={"shown": "on"})
LINES = [f"line {number} of the log says status=ok\n" for number in range(1, 1501)]
LOG = "".join([*LINES[:700], f"connecting with {SECRET} now\n", *LINES[700:]])


def is_hidden(shown: object) -> bool:
    return SECRET[:8] not in str(shown) and SECRET[-8:] not in str(shown)


async def keep(session: Session, text: str = LOG) -> str:
    reply = await session.call("logs", {}, lambda: text)
    assert reply.kept is not None
    return reply.kept.name


@pytest.mark.parametrize("place", ["off", "on"])
async def test_small_results_are_redacted_only_if_you_say_so(place: str) -> None:
    async with Session(Settings(redact={"shown": place}), secrets=NAMED) as session:
        text = await session.call("a", {}, lambda: f"it is {SECRET}")
        value = await session.call("b", {}, lambda: {"deep": [SECRET], "n": 1})
        blocks = await session.call("c", {}, lambda: [{"type": "text", "text": SECRET, "annotations": {"x": 1}}])
        result: dict[str, Any] = {"content": [], "structuredContent": {"k": SECRET}, "_meta": {"s": SECRET}}
        own = await session.call("d", {}, lambda: Output([{"type": "text", "text": "see k"}], original=result))
    shown = [(reply.text, reply.content, reply.value, reply.original) for reply in (text, value, blocks, own)]
    assert [is_hidden(each) for each in shown] == [place == "on"] * 4
    assert text.passed
    assert value.passed
    assert json.loads(value.text) == value.value
    assert blocks.content[0]["annotations"] == {"x": 1}


async def test_an_object_with_secrets_that_cannot_be_replaced_does_not_pass() -> None:
    class Own:
        def __init__(self) -> None:
            self.text = SECRET

    async with Session(ON, secrets=NAMED) as session:
        reply = await session.call("a", {}, lambda: Output([{"type": "text", "text": SECRET}], original=Own()))
    assert not reply.passed
    assert reply.value is None
    assert is_hidden(reply.text)


@pytest.mark.parametrize("size", [1, 20_000, 200_000], ids=["passes", "kept", "kept unmeasured"])
@pytest.mark.parametrize("late", [False, True])
async def test_links_and_notes_beside_the_texts_are_redacted(size: int, late: bool) -> None:
    image = base64.b64encode(SECRET.encode()).decode()
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "word " * size, "annotations": {"note": SECRET}},
        {"type": "resource_link", "uri": f"postgres://app:{SECRET}@db/orders", "name": "db"},
        {"type": "resource", "resource": {"uri": f"file:///{SECRET}", "text": "read me"}, "_meta": {SECRET: 1}},
        {"type": "image", "data": image, "mimeType": "image/png"},
    ]
    result = Output(blocks, original={"content": blocks, "_meta": {"trace": SECRET}})
    async with Session(Settings(redact={"shown": "on"}, toolResponseMaxBytes=100_000), secrets=NAMED) as session:
        reply = await session.call("t", {}, lambda: result, background="now" if late else None)
        if late:
            reply = await session.invoke("wait_for_tool_output", {})
            reply = await session.invoke("get_tool_output", {"id": re.findall(r"(?:art|out)_\w+", reply.text)[0], "mode": "raw"})
    assert is_hidden((reply.text, reply.content, reply.value, reply.original))
    assert "db" in str(reply.content)
    if size == 1 and not late:
        assert [block["type"] for block in reply.content] == [block["type"] for block in blocks]
        assert reply.content[3] is blocks[3]


async def test_streams_and_failures_are_redacted() -> None:
    async def stream() -> Any:
        yield f"a {SECRET[:10]}"
        yield f"{SECRET[10:]} b"

    def fail() -> None:
        raise ValueError(f"cannot log in as {SECRET}")

    async def break_off() -> Any:
        yield LOG
        raise ValueError(f"lost {SECRET}")

    store = MemoryStore()
    async with Session(ON, secrets=NAMED, store=store) as session:
        replies = [await session.call(name, {}, tool) for name, tool in (("s", stream), ("f", fail), ("b", break_off))]
        journal = [list(lines) for _, lines in Archive([store]).journals()]
    assert all(is_hidden(reply) for reply in replies)
    assert "[redacted:service-token:" in replies[0].text
    assert "[redacted:service-token:" in replies[1].text
    assert is_hidden(journal)


WAYS: dict[str, dict[str, Any]] = {
    "grep": {"mode": "grep", "pattern": "connecting"},
    "grep for the value": {"mode": "grep", "pattern": SECRET[:6]},
    "lines": {"mode": "slice", "slice": {"lines": "699-703"}},
    "characters": {"mode": "slice", "slice": {"start": 27_400, "length": 400}},
    "anchor": {"mode": "slice", "slice": {"anchor": "connecting with ", "window": 100}},
    "extract": {"mode": "extract", "query": "connecting with"},
}


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_of_reading_shows_it(way: str) -> None:
    async with Session(ON, secrets=NAMED) as session:
        reply = await session.invoke("get_tool_output", {"id": await keep(session), **WAYS[way]})
    assert is_hidden(reply.text)
    assert ("[redacted:service-token:" in reply.text) == (way not in ("grep for the value", "characters"))


async def test_a_reply_with_a_card_or_with_passages_hides_it_and_says_so() -> None:
    async with Session(ON, secrets=NAMED) as session:
        card = await session.call("logs", {}, lambda: f"{SECRET}\n{LOG}")
        found = await session.call("logs", {}, lambda: LOG + "\n", intent="connecting with")
    assert is_hidden((card, found))
    assert "[Hidden here: service-token (2)." in card.text
    assert "connecting with [redacted:service-token:" in found.text


async def test_spelling_it_out_by_small_requests_gives_the_mark() -> None:
    async with Session(ON, secrets=NAMED) as session:
        name = await keep(session)
        start = LOG.index(SECRET) - 5
        slices = [
            (
                await session.invoke(
                    "get_tool_output", {"id": name, "mode": "slice", "slice": {"start": start + at, "length": 1}}
                )
            ).text
            for at in range(45)
        ]
        first = start
        pieces = list[str]()
        for _ in range(12):
            page = await session.invoke("get_artifact", {"artifact_id": name, "bytes": f"{first}-{first}"})
            pieces.append(page.text)
            first += 1
    assert "[redacted:service-token:" in "".join(slices)
    assert is_hidden("".join(slices))
    assert is_hidden("".join(pieces))
    assert any("[redacted:" in piece for piece in pieces)


async def test_json_is_queried_with_marks() -> None:
    value = {"items": [{"id": number, "name": f"n{number}"} for number in range(900)], "auth": {"key": SECRET, "pin": 1234567890}}
    async with Session(ON, secrets={**NAMED, "PIN_SECRET": "1234567890"}) as session:
        reply = await session.call("j", {}, lambda: value)
        assert reply.kept is not None
        asked = {"id": reply.kept.name, "mode": "query", "query": "auth"}
        found = await session.invoke("get_tool_output", asked)
        reverse = await session.invoke("get_tool_output", {**asked, "query": "reverse(auth.key)"})
        whole = json.loads(session.open(reply.kept.name).bytes())
    assert "Numbers among them became strings." in reply.text
    assert is_hidden((found, reverse))
    assert SECRET[::-1][:8] not in reverse.text
    assert whole["auth"]["pin"].startswith("[redacted:pin-secret:")
    assert whole["items"] == value["items"]


async def test_sql_loads_the_view() -> None:
    pytest.importorskip("duckdb")
    rows = "id,token\n" + "".join(f"{number},{SECRET if number == 77 else 'none'}\n" for number in range(3000))
    async with Session(ON, secrets=NAMED) as session:
        name = await keep(session, rows)
        found = await session.sql(f"SELECT substr(token, 1, 10) AS a, reverse(token) AS b, token FROM {name} WHERE id = 77")
    assert is_hidden(found.text)
    assert SECRET[::-1][:8] not in found.text
    assert "[redacted:" in found.text


async def test_decoded_text_is_redacted_and_the_library_reads_the_view() -> None:
    async with Session(ON, secrets=NAMED) as session:
        kept = await session.keep(gzip.compress(LOG.encode(), mtime=0), "packed")
        found = await session.invoke("get_tool_output", {"id": kept.name, "mode": "grep", "pattern": "connecting"})
        with session.open(await keep(session)) as stored:
            read = [stored.bytes(), stored.text(), stored.lines(), stored.grep("connecting").text]
            assert stored.damage == ""
            assert stored.kept.size.bytes == len(LOG.encode())
    assert is_hidden((found, read))
    assert "[redacted:" in found.text


async def test_places_are_those_of_the_stored_bytes_and_verify_says_redacted() -> None:
    store = MemoryStore()
    async with Session(ON, secrets=NAMED, store=store) as session:
        name = await keep(session)
        found = await session.extract(name, "connecting with")
        other = await session.extract(name, "line 900 of the log")
        after = await session.invoke(
            "get_tool_output", {"id": name, "mode": "slice", "slice": {"anchor": LINES[900], "window": 60}}
        )
        archive = Archive([store])
        (check,) = archive.verify(archive.items())
    data = LOG.encode()
    (hidden, *_), (plain, *_) = found.excerpts, other.excerpts
    assert SECRET in data[hidden.start_byte : hidden.end_byte].decode()
    assert is_hidden(hidden.text)
    assert data[plain.start_byte : plain.end_byte].decode() == plain.text
    assert (hidden.start_line, found.source_size_bytes) == (701, len(data))
    place = data.index(LINES[900].encode())
    assert f"of {len(data)}" in after.text
    assert any(f"bytes {start}-" in after.text for start in range(place - 60, place + 1))
    assert check.sound
    assert check.redacted >= 1


async def test_reading_page_by_page_covers_everything() -> None:
    async with Session(Settings(redact={"shown": "on"}, answerMaxBytes=2_000), secrets=NAMED) as session:
        text = f"{'x' * 3000}{SECRET}{'y' * 3000} {SECRET}" + "z" * 9000
        name, first, pages = await keep(session, text), 0, list[str]()
        while first < len(text):
            page = session.open(name)
            passage = reading.bytes_range(page.reader, page.view, first, None, reading.Bound(700))
            assert passage.end_byte > first
            first = passage.end_byte
            pages.append(passage.text)
    shown = "".join(pages)
    assert is_hidden(shown)
    assert shown.count("[redacted:") == 2
    assert shown.replace(shown[3000 : shown.index("]") + 1], SECRET) == text


async def test_base64_of_a_binary_output_has_marks_too() -> None:
    async with Session(ON, secrets=NAMED) as session:
        kept = await session.keep(b"\x00\x01\xff" * 100 + SECRET.encode() + b"\x00\xfe" * 100, "blob")
        asked = {"id": kept.name, "mode": "slice", "slice": {"start": 290, "length": 60}}
        reply = await session.invoke("get_tool_output", asked)
    assert SECRET.encode()[:8] not in base64.b64decode(reply.text.split("\n")[1])


async def test_a_running_tool_is_read_with_marks() -> None:
    produced, may_end = anyio.Event(), anyio.Event()

    async def stream() -> Any:
        yield LOG + "later\n" * 400
        produced.set()
        await may_end.wait()

    async with Session(Settings(redact={"shown": "on"}, asyncTimeoutSecs=0.01), secrets=NAMED) as session:
        reply = await session.call("slow", {}, stream)
        await produced.wait()
        assert reply.job is not None
        found = await session.invoke("get_tool_output", {"id": reply.job.id, "mode": "grep", "pattern": "connecting"})
        may_end.set()
        await session.stop()
        later = await session.invoke("get_tool_output", {"id": reply.job.id, "mode": "grep", "pattern": "connecting"})
    assert is_hidden((found, later))
    assert "[redacted:" in found.text
    assert "[redacted:" in later.text


@pytest.mark.parametrize("before", ["line\n" * 2000, "word " * 2000, ""])
@pytest.mark.parametrize("arrived", [7, 30])
async def test_a_running_tool_shows_no_secret_that_has_arrived_in_part(before: str, arrived: int) -> None:
    produced, may_end = anyio.Event(), anyio.Event()

    async def stream() -> Any:
        yield f"{before}connecting with {json.dumps(KEY)[:arrived]}"
        produced.set()
        await may_end.wait()
        yield f"{json.dumps(KEY)[arrived:]} now\n"

    settings = Settings(redact={"shown": "on"}, asyncTimeoutSecs=0.01)
    async with Session(settings, secrets={"SIGNING_KEY": KEY}) as session:
        reply = await session.call("slow", {}, stream)
        await produced.wait()
        assert reply.job is not None
        asked: list[dict[str, Any]] = [
            {"mode": "grep", "pattern": "w"},
            {"mode": "slice", "slice": {"start": 0, "length": 10_100}},
        ]
        while_running = [await session.invoke("get_tool_output", {"id": reply.job.id, **each}) for each in asked]
        may_end.set()
        await session.stop()
        later = await session.invoke("get_tool_output", {"id": reply.job.id, "mode": "grep", "pattern": "connecting"})
    texts = "\n".join(each.text for each in (*while_running, later))
    assert not any(KEY[at : at + 5] in texts for at in range(len(KEY) - 4))
    assert "[redacted:signing-key:" in later.text
    if before:
        assert re.search(r"has produced \d+ bytes so far\. The next \d+ can be read when", while_running[0].text)


async def test_a_budget_is_kept() -> None:
    budget = ContextBudget(window=8_000)
    async with Session(ON, secrets=NAMED, budget=budget) as session:
        reply = await session.call("logs", {}, lambda: LOG)
        small = await session.call("small", {}, lambda: SECRET)
    assert reply.fits
    assert small.fits
    assert is_hidden((reply, small))


@pytest.mark.parametrize("place", ["shown", "sent"])
async def test_a_model_that_extracts_gets_marks(place: str) -> None:
    asked: list[str] = []

    def answer(request: Any) -> str:
        asked.append(str(request))
        return "Nothing relevant."

    settings = Settings(redact={place: "on"}, extractionModel="test/model")
    async with Session(settings, secrets=NAMED, models={"test/model": ScriptedModel(answer)}) as session:
        await session.extract(await keep(session), "what is it connecting with", mode="full-chunked")
    assert asked
    assert is_hidden(asked)
    assert "[redacted:service-token:" in "".join(asked)


async def test_per_server_and_tool() -> None:
    settings = Settings(
        redact={"shown": "on"},
        servers={"trusted": {"redactShown": "off"}},
        truncation={"overrides": {"x": {"redactShown": "off"}}},
    )
    async with Session(settings, secrets=NAMED) as session:
        replies = [await session.call("a", {}, lambda: SECRET, server=server) for server in ("", "trusted")] + [
            await session.call("x", {}, lambda: SECRET)
        ]
    assert [is_hidden(reply) for reply in replies] == [True, False, False]


async def test_warnings_name_kinds_and_counts_in_replies_to_stored_outputs_only() -> None:
    async with Session(Settings(redact={"shown": "warn"}), secrets=NAMED) as session:
        small = await session.call("a", {}, lambda: SECRET)
        large = await session.call("logs", {}, lambda: LOG)
    assert small.text == SECRET
    assert "[This output may contain secrets: service-token (1). Nothing was hidden.]" in large.text


async def test_off_adds_nothing() -> None:
    async with Session(Settings(), secrets=NAMED) as session:
        large = await session.call("logs", {}, lambda: LOG)
        assert large.kept is not None
        assert session.open(large.kept.name).text() == LOG
    assert "secrets" not in large.text


@pytest.mark.parametrize("place", ["shown", "stored"])
@pytest.mark.parametrize("before", [980, 990, 999])
@pytest.mark.parametrize("is_raised", [True, False])
async def test_a_long_error_is_not_cut_within_a_secret(place: str, before: int, is_raised: bool) -> None:
    async def fail() -> Any:
        if is_raised:
            raise RuntimeError(f"{'x' * before}{SECRET} said no")
        return Output([{"type": "text", "text": f"{'x' * before}{SECRET} said no"}], is_error=True)

    store = MemoryStore()
    async with Session(Settings(redact={place: "on"}), secrets=NAMED, store=store) as session:
        reply = await session.call("login", {}, fail, background="now")
        assert reply.job is not None
        told = await session.invoke("wait_for_tool_output", {})
        read = await session.invoke("get_tool_output", {"id": reply.job.id, "mode": "raw"})
        journal = b"".join(line for _, lines in Archive([store]).journals() for line in lines).decode()
    assert "xxx" in told.text
    assert not any(SECRET[:4] in each for each in (told.text, read.text, journal))


@pytest.mark.parametrize("is_late", [True, False])
async def test_why_a_stream_broke_off_is_not_cut_within_a_secret(is_late: bool) -> None:
    async def stream() -> Any:
        yield LOG
        raise RuntimeError(f"{'x' * 980}{SECRET} said no")

    store = MemoryStore()
    async with Session(ON, secrets=NAMED, store=store) as session:
        reply = await session.call("logs", {}, stream, background="now" if is_late else None)
        if is_late:
            reply = await session.invoke("wait_for_tool_output", {})
        journal = b"".join(line for _, lines in Archive([store]).journals() for line in lines).decode()
    assert "x" * 900 in journal
    assert not any(SECRET[:4] in each for each in (reply.text, journal))
