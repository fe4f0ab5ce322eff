"""Who extracts and what goes on record: the choice of model, fallbacks, accounting, the op tree."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from frames import unmarked

from overspill import Session, Settings
from overspill.errors import BadRequest
from overspill.handles import artifact_id, name
from overspill.models.protocol import ModelError, Request, Response, Usage
from overspill.record.events import ModelCalled, OutputExtracted, decode_events
from overspill.record.op_tree import accounting
from overspill.settings.keys import PresetName
from overspill.testing import ScriptedModel
from overspill.text import tokens
from overspill.wording import retrieval as wording

pytestmark = pytest.mark.anyio

LOG = "".join(f"2026-11-15T04:27:{i % 60:02d}Z INFO request {i} served in {i % 7} ms\n" for i in range(600))
LOG += "2026-11-15T04:40:00Z ERROR request 4711 failed: connection reset by peer (id=abc-777)\n"
CAUSE = "ERROR request 4711 failed: connection reset by peer (id=abc-777)"


def reporting(answer: str, *quotes: str):
    def reply(request: Request) -> Response:
        text = f"{answer}\n\nQUOTES:\n" + "".join(f"> {quote}\n" for quote in quotes)
        if found := re.search(r"<ai-agent-(.+?)-FINAL", request.system):
            text = f'<ai-agent-{found[1]}-FINAL format="text">\n{text}\nCONFIDENCE: 90\n</ai-agent-{found[1]}-FINAL>'
        return Response(text, usage=Usage(1200, 34, 0.002), model="test/reader")

    return reply


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    model = ScriptedModel(reporting("Request 4711 failed.", CAUSE), name="test/reader")
    async with Session(Settings(storeDir=str(tmp_path)), models={"test/reader": model}) as session:
        yield session


async def handle_of(session: Session) -> str:
    reply = await session.call("get_log", {"path": "/var/log/web.log"}, lambda path: LOG)
    assert reply.kept
    return reply.kept.handle


async def test_an_abstract_is_followed_by_its_checked_citations(session: Session):
    handle = await handle_of(session)
    reply = await session.invoke("tool_output", {"handle": handle, "extract": "which request failed", "mode": "full-chunked"})
    start = LOG.index(CAUSE)
    assert unmarked(reply.text).startswith(
        f"ABSTRACT FROM TOOL OUTPUT get_log WITH HANDLE {name(handle[-36:])}, STRATEGY:full-chunked:\n"
        "\n"
        "[untrusted data N]\n"
        "Request 4711 failed.\n"
        "[end of untrusted data N]\n"
        "CITATIONS (checked against the stored output):\n"
        f"[1] line 601, bytes {start}-{start + len(CAUSE)}\n"
        "\n"
        "PASSAGES (found by the built-in engine for the same question):\n"
        "[untrusted data N]\n"
    )
    assert CAUSE in reply.text
    assert not reply.is_error


async def test_snippets_carry_every_kind_of_span(tmp_path: Path):
    model = ScriptedModel(reporting("Request 4711 failed.", CAUSE), name="test/reader")
    async with Session(Settings("slow", storeDir=str(tmp_path)), models={"test/reader": model}) as session:
        handle = await handle_of(session)
        reply = await session.invoke("get_tool_output", {"id": handle, "mode": "extract", "query": "the failed request"})
        digest = session.open(handle).kept.sha256
    found = json.loads(reply.text)
    start = LOG.index(CAUSE)
    assert found["snippets"] == [
        {
            "text": CAUSE,
            "start_byte": start,
            "end_byte": start + len(CAUSE),
            "chunk_index": 0,
            "start_char": start,
            "end_char": start + len(CAUSE),
            "start_line": 601,
            "end_line": 601,
        }
    ]
    assert (found["source_size_bytes"], found["chunks_searched"], found["chunks_total"]) == (len(LOG), 1, 1)
    assert found["source_hash"] == digest
    assert "no_match_reason" not in found


async def test_a_failure_names_the_strategy_that_was_used(tmp_path: Path):
    model = ScriptedModel(lambda request: ModelError("test/reader: no key.", is_transient=False), name="test/reader")
    settings = Settings(storeDir=str(tmp_path), extractionFallback=[])
    async with Session(settings, models={"test/reader": model}) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "which request failed"})
    assert (reply.is_error, reply.text) == (
        True,
        f"TOOL_OUTPUT FAILED FOR get_log WITH HANDLE {name(handle[-36:])}, STRATEGY:full-chunked:\n\n"
        "full-chunked extraction failed: The document could not be read. test/reader: no key. "
        "No fallback is configured. The mode truncate shows the beginning and the end.",
    )


async def test_no_match_is_said_only_of_what_was_searched(tmp_path: Path):
    failing = ScriptedModel(lambda request: ModelError("no key", is_transient=False), name="test/reader")
    finding = ScriptedModel(reporting("NO RELEVANT DATA FOUND"), name="test/reader")
    asked = {"mode": "extract", "query": "the failed request"}
    for model, searched, said in ((failing, 0, None), (finding, 1, "No content matching query found in tool output.")):
        async with Session(Settings("slow", storeDir=str(tmp_path)), models={"test/reader": model}) as session:
            found = json.loads((await session.invoke("get_tool_output", {"id": await handle_of(session), **asked})).text)
        assert (found["snippets"], found["chunks_searched"], found.get("no_match_reason")) == ([], searched, said)


@pytest.mark.promise("every-quote-checked")
async def test_what_is_not_stored_is_told_with_every_extraction(tmp_path: Path):
    settings = Settings(storeDir=str(tmp_path), truncation={"maxArtifactSize": 20_000})
    note = (
        "Only the first 20,000 bytes of this output are stored: "
        "one output may have at most 20,000 bytes (truncation.maxArtifactSize)."
    )
    async with Session(settings) as session:
        handle = await handle_of(session)
        abstract = await session.invoke("tool_output", {"handle": handle, "extract": "connection reset"})
        assert abstract.text.splitlines()[2] == f"WARNING: {note}"
        snippets = await session.invoke("get_tool_output", {"id": handle, "mode": "extract", "query": "connection reset"})
        assert json.loads(snippets.text)["warnings"] == [note]
        assert (await session.extract(handle, "connection reset")).warnings == (note,)


async def test_nothing_unverified_stands_as_a_citation(tmp_path: Path):
    model = ScriptedModel(reporting("It was the disk.", "ERROR disk full", CAUSE), name="test/reader")
    async with Session(Settings(storeDir=str(tmp_path)), models={"test/reader": model}) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "why", "mode": "full-chunked"})
    assert "WARNING: 1 of 2 passages that the model cited are not there or do not support its answer." in reply.text
    assert "ERROR disk full" not in reply.text
    assert "It was the disk." in reply.text


@pytest.mark.parametrize(
    ("settings", "turn_model", "asked"),
    [
        ({"toolOutput": {"models": ["test/b"]}, "extractionModel": "test/c"}, "test/a", "test/b"),
        ({"extractionModel": "test/c"}, "test/a", "test/c"),
        ({}, "test/b", "test/b"),
        ({}, None, "test/a"),
        ({"extractionModel": "builtin/lexical"}, "test/a", "builtin/lexical"),
    ],
)
async def test_the_first_model_that_is_set_extracts(tmp_path: Path, settings: dict[str, object], turn_model: str, asked: str):
    models = {name: ScriptedModel(reporting("Yes.", CAUSE), name=name) for name in ("test/a", "test/b", "test/c")}
    async with Session(Settings(storeDir=str(tmp_path), **settings), models=models) as session:
        handle = await handle_of(session)
        await session.turn([], model=turn_model)
        await session.invoke("tool_output", {"handle": handle, "extract": "why", "mode": "full-chunked"})
    assert [name for name, model in models.items() if model.requests] == ([asked] if asked in models else [])


async def test_without_any_model_the_built_in_engine_answers(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "which request failed and why"})
    assert reply.text.startswith(
        f"ABSTRACT FROM TOOL OUTPUT get_log WITH HANDLE {name(handle[-36:])}, STRATEGY:builtin:\n\n[untrusted data "
    )
    assert CAUSE in reply.text
    assert not reply.is_error


@pytest.mark.parametrize("preset", ["tool_output", "artifacts", "slow"])
@pytest.mark.parametrize("mode", ["full-chunked", "read-grep"])
async def test_the_documents_presets_name_a_strategy_of_theirs_and_the_engine_in_the_next_line(
    tmp_path: Path, preset: PresetName, mode: str
):
    async with Session(Settings(preset=preset, storeDir=str(tmp_path))) as session:
        kept = await session.keep(LOG, "get_log")
        args = {"handle": kept.handle, "extract": "which request failed and why", "mode": mode}
        reply = await session.invoke("tool_output", args)
    assert reply.text.startswith(
        f"ABSTRACT FROM TOOL OUTPUT get_log WITH HANDLE {kept.handle}, STRATEGY:{mode}:\n\n"
        f"{wording.BUILTIN_ANSWERED}\n\n[untrusted data "
    )
    assert CAUSE in reply.text


async def test_a_failing_model_is_replaced_by_the_engine_with_a_warning(tmp_path: Path):
    model = ScriptedModel(lambda request: ModelError("no key", is_transient=False), name="test/reader")
    async with Session(Settings(storeDir=str(tmp_path)), models={"test/reader": model}) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "which request failed"})
    assert "WARNING: " in reply.text
    assert "no key" in reply.text
    assert CAUSE in reply.text


async def test_a_model_that_cannot_be_opened_says_why(tmp_path: Path):
    settings = Settings(preset="tool_output", storeDir=str(tmp_path), extractionModel="nowhere/model")
    async with Session(settings) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "which request failed"})
    assert f"WITH HANDLE {handle}, STRATEGY:truncate:" in reply.text
    assert "No model provider is called 'nowhere'." in reply.text


async def test_an_unknown_handle_is_a_successful_answer(session: Session):
    reply = await session.invoke("tool_output", {"handle": "session-1/2", "extract": "why"})
    assert reply.text == (
        "ABSTRACT FROM TOOL OUTPUT unknown WITH HANDLE session-1/2, STRATEGY:auto:\n"
        "\n"
        "Nothing was searched: this session has no stored output with the handle 'session-1/2'. "
        "It has 0 stored outputs. Use a handle exactly as a tool result gave it."
    )
    assert not reply.is_error


async def test_extract_mode_needs_a_query(session: Session):
    handle = await handle_of(session)
    reply = await session.invoke("get_tool_output", {"id": handle, "mode": "extract"})
    assert (reply.text, reply.is_error) == ("Query required for extract mode.", True)


async def test_model_calls_are_accounted_and_stand_in_the_op_tree(session: Session):
    handle = await handle_of(session)
    await session.invoke("tool_output", {"handle": handle, "extract": "which request failed", "mode": "full-chunked"})
    counters = session.counters
    assert (counters.model_calls, counters.input_tokens, counters.output_tokens, counters.cost) == (1, 1200, 34, 0.002)
    extraction = next(op for op in session.op_tree().children if op.kind == "session")
    assert (extraction.name, extraction.attributes["strategy"], extraction.attributes["excerpts"]) == (
        "tool_output",
        "full-chunked",
        1,
    )
    (step,) = extraction.children
    assert (step.kind, step.name, step.attributes["tokensIn"]) == ("model", "test/reader", 1200)
    assert step.attributes["response"].startswith("Request 4711 failed.")
    assert len(step.attributes["response"].encode()) <= 4096


async def test_a_try_that_gave_nothing_is_accounted_for_with_what_it_cost(tmp_path: Path):
    garbage = Response(" ", usage=Usage(1100, 9, 0.001), model="test/reader")
    report = reporting("Request 4711 failed.", CAUSE)
    model = ScriptedModel(lambda request: garbage if len(model.requests) < 3 else report(request), name="test/reader")
    async with Session(Settings(storeDir=str(tmp_path)), models={"test/reader": model}) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "which failed", "mode": "full-chunked"})
        counters = session.counters
        extraction = next(op for op in session.op_tree().children if op.kind == "session")
    assert "Request 4711 failed." in reply.text
    assert (counters.model_calls, counters.failed_model_calls) == (3, 2)
    assert (counters.input_tokens, counters.output_tokens, round(counters.cost, 6)) == (3400, 52, 0.004)
    assert [step.status for step in extraction.children] == ["failed", "failed", "ok"]


async def test_a_failed_extraction_is_on_record_with_its_tool_output_and_mode(tmp_path: Path):
    broken = ScriptedModel(lambda request: ModelError("no key", is_transient=False), name="test/broken")
    async with Session(Settings(storeDir=str(tmp_path), extractionFallback=[]), models={"test/broken": broken}) as session:
        handle = await handle_of(session)
        reply = await session.invoke("tool_output", {"handle": handle, "extract": "why", "mode": "full-chunked"})
        assert reply.is_error
        call, extraction, retrieval = session.op_tree().children
        assert (extraction.kind, extraction.name, extraction.status) == ("session", "tool_output", "failed")
        assert extraction.attributes == {"id": artifact_id(handle[-36:]), "mode": "full-chunked"}
        assert [step.status for step in extraction.children] == ["failed"]
        assert (call.name, retrieval.name, session.counters.extractions) == ("get_log", "tool_output", 0)


NO_KEY = ModelError("no key", is_transient=False)


@pytest.mark.parametrize(
    ("reply", "settings", "mode", "level", "words"),
    [
        (
            reporting("Yes.", CAUSE), {}, "full-chunked", "INFO",
            "extracted from HANDLE (mode MODE, strategy full-chunked, 1 of 1 chunks).",
        ),
        (
            NO_KEY, {}, "full-chunked", "WARNING",
            "fell back to the built-in engine for HANDLE (mode MODE, strategy builtin, 1 of 1 chunks).",
        ),
        (
            NO_KEY, {"extractionFallback": ["truncate"]}, "read-grep", "WARNING",
            "fell back to truncation for HANDLE (mode MODE, strategy truncate, 0 of 1 chunks).",
        ),
        (NO_KEY, {"extractionFallback": []}, "full-chunked", "WARNING", "could not extract from HANDLE (mode MODE)."),
        (NO_KEY, {}, "truncate", "INFO", "extracted from HANDLE (mode MODE, strategy truncate, 0 of 1 chunks)."),
        (
            NO_KEY, {"extractionModel": "builtin/lexical"}, "full-chunked", "INFO",
            "extracted from HANDLE (mode MODE, strategy builtin, 1 of 1 chunks).",
        ),
    ],
)  # fmt: skip
async def test_each_extraction_is_logged_and_one_that_fell_back_or_failed_as_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reply: Any, settings: dict[str, Any], mode: str, level: str, words: str
):
    caplog.set_level("INFO", "overspill")
    model = ScriptedModel(reply if callable(reply) else lambda request: reply, name="test/reader")
    async with Session(Settings(storeDir=str(tmp_path), **settings), models={"test/reader": model}) as session:
        handle = await handle_of(session)
        await session.invoke("tool_output", {"handle": handle, "extract": "a private question", "mode": mode})
        extraction = next(op for op in session.op_tree().children if op.kind == "session")
    _, logged = [line for line in caplog.records if line.name == "overspill"]
    said = words.replace("HANDLE", handle).replace("MODE", mode)
    assert (logged.levelname, logged.getMessage()) == (level, f"Tool 'tool_output' {said}")
    fallback = "builtin" if "engine" in words else "truncate" if "truncation" in words else ""
    assert vars(logged).items() >= {"tool": "tool_output", "handle": handle, "mode": mode, "fallback": fallback}.items()
    assert extraction.attributes.get("fallback", "") == fallback
    assert "private" not in str(vars(logged))
    assert CAUSE not in str(vars(logged))


async def test_the_record_names_the_engine_where_it_answered(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        handle = await handle_of(session)
        await session.invoke("tool_output", {"handle": handle, "extract": "which request failed", "mode": "read-grep"})
        operation = next(op for op in session.op_tree().children if op.kind == "session")
        (journal,) = tmp_path.rglob("journal.jsonl")
        lines = journal.read_bytes().splitlines(keepends=True)
    (event,) = [event for event in decode_events(lines) if isinstance(event, OutputExtracted)]
    assert (event.mode, event.strategy, operation.attributes["strategy"]) == ("read-grep", "builtin", "builtin")


async def test_a_cancelled_extraction_is_on_record_as_failed(tmp_path: Path):
    class Hanging(ScriptedModel):
        async def ask(self, request: Request) -> Response:
            asked.set()
            return await anyio.sleep_forever()

    asked = anyio.Event()
    async with Session(Settings(storeDir=str(tmp_path)), models={"test/hanging": Hanging(name="test/hanging")}) as session:
        handle = await handle_of(session)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(session.extract, handle, "which")
                await asked.wait()
                group.cancel_scope.cancel()
        _, extraction = session.op_tree().children
    assert (extraction.name, extraction.status, extraction.attributes["mode"]) == ("extract", "failed", "auto")


async def test_a_question_that_cannot_be_asked_is_no_extraction(session: Session):
    handle = await handle_of(session)
    with pytest.raises(BadRequest):
        await session.extract(handle, " ")
    assert [op.name for op in session.op_tree().children] == ["get_log"]


async def test_our_estimate_of_a_request_stands_beside_what_the_provider_counted(session: Session):
    handle = await handle_of(session)
    await session.invoke("tool_output", {"handle": handle, "extract": "which request failed", "mode": "full-chunked"})
    (step,) = next(op for op in session.op_tree().children if op.kind == "session").children
    sent = tokens.count(LOG).tokens
    assert sent < step.attributes["tokensInEstimated"] < 1.3 * sent
    assert step.attributes["tokensIn"] == 1200


async def test_the_record_of_an_extraction_holds_places_not_words(session: Session, tmp_path: Path):
    handle = await handle_of(session)
    await session.invoke("tool_output", {"handle": handle, "extract": "a very private question", "mode": "full-chunked"})
    (journal,) = tmp_path.rglob("journal.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert b"very private question" not in b"".join(lines)
    (event,) = [event for event in decode_events(lines) if isinstance(event, OutputExtracted)]
    start = LOG.index(CAUSE)
    assert [(quote.start, quote.end) for quote in event.quotes] == [(start, start + len(CAUSE))]
    (asked,) = [event for event in decode_events(lines) if isinstance(event, ModelCalled)]
    (entry,) = accounting([asked], session.id)
    assert entry == {
        "type": "llm",
        "timestamp": asked.t,
        "status": "ok",
        "latency": asked.latency,
        "provider": "test",
        "model": "reader",
        "tokens": {"inputTokens": 1200, "outputTokens": 34},
        "costUsd": 0.002,
        "extraction": event.op,
    }


async def test_an_answer_stays_within_its_bound(tmp_path: Path):
    quotes = [line for line in LOG.splitlines() if "served in 3" in line]
    model = ScriptedModel(reporting("Many.", *quotes), name="test/reader")
    settings = Settings(storeDir=str(tmp_path), answerMaxBytes=2000)
    async with Session(settings, models={"test/reader": model}) as session:
        handle = await handle_of(session)
        abstract = await session.invoke("tool_output", {"handle": handle, "extract": "all", "mode": "full-chunked"})
        snippets = await session.invoke("get_tool_output", {"id": handle, "mode": "extract", "query": "all"})
    assert len(abstract.text.encode()) <= 2000
    assert len(snippets.text.encode()) <= 2000
    found = json.loads(snippets.text)
    assert found["snippets_omitted"] + len(found["snippets"]) == len(quotes)
    assert found["hint"] == "More snippets match than fit. Ask for less at a time, or read around a byte span with slice."
