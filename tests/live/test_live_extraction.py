"""Every way to extract, with a real model. What it says may be wrong; what holds whatever it says is checked here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from live_model import LiveModel

from overspill.extraction import BUILTIN, NOT_FOUND
from overspill.record.op_tree import Op
from overspill.session.session import Session
from overspill.types import Kept

pytestmark = [pytest.mark.live, pytest.mark.anyio]

WINDOW = 2048
OUTPUT = 256
TRIES = 2
STEPS = ("reads the parcel list", "weighs a parcel", "prints a label", "loads the van", "signs the delivery note")
FAILED = "14:07 depot Riga: parcel 7731 was not delivered because the street was flooded\n"
QUESTION = "Which parcel was not delivered, and why?"
RUN = "from overspill.cli import main; main()"


def log(lines: int) -> str:
    steps = [f"{8 + at // 60:02}:{at % 60:02} depot Riga: worker {at % 7} {STEPS[at % 5]}\n" for at in range(lines)]
    return "".join([*steps[: lines * 2 // 3], FAILED, *steps[lines * 2 // 3 :]])


ONE_CHUNK = log(30)
TWO_CHUNKS = log(110)


@asynccontextmanager
async def opened(model: LiveModel, folder: Path, **more: Any) -> AsyncIterator[Session]:
    options = {"toolResponseMaxBytes": 1000, "storeDir": str(folder / "store"), "extractionRetries": TRIES - 1, **more}
    settings = model.settings(window=WINDOW, output=OUTPUT, **options)
    async with Session(settings, endpoints=model.endpoints(settings)) as session:
        yield session


async def keep(session: Session, text: str) -> Kept:
    reply = await session.call("fetch_log", {"depot": "Riga"}, lambda depot: text)
    assert reply.kept is not None
    return reply.kept


async def ask(session: Session, kept: Kept, mode: str | None = None) -> str:
    """The answer of tool_output, below the header it has to have."""
    args = {"handle": kept.handle, "extract": QUESTION} | ({"mode": mode} if mode else {})
    reply = await session.invoke("tool_output", args)
    assert not reply.is_error, reply.text
    strategy = operation(session).attributes["strategy"]
    header = f"ABSTRACT FROM TOOL OUTPUT fetch_log WITH HANDLE {kept.handle}, STRATEGY:{strategy}:\n\n"
    assert reply.text.startswith(header)
    assert len(reply.text.encode()) <= session.settings.answer_max_bytes
    return reply.text.removeprefix(header)


def operation(session: Session) -> Op:
    (found,) = (op for op in session.op_tree().children if op.kind == "session")
    return found


def check_citations(session: Session, kept: Kept, body: str) -> None:
    """Each stands in the stored bytes at the place it names, word for word."""
    places = re.findall(r"^(\[\d+\] lines? [\d-]+, bytes (\d+)-(\d+))", body, re.MULTILINE)
    assert len(places) == operation(session).attributes["excerpts"]
    with session.open(kept.handle) as stored:
        for place, start, end in places:
            quoted = stored.bytes(int(start), int(end)).decode().strip()
            assert quoted
            assert quoted in body if operation(session).attributes["model"] == BUILTIN else f"{place}: {quoted}" in body


def check_honesty(model: LiveModel, session: Session, body: str) -> None:
    """The model's own answer, or a stand-in that says it is one; without a checked quote a warning, or that nothing was found."""
    facts = operation(session).attributes
    assert body.strip()
    if facts["model"] != model.target:
        assert facts["model"] in (BUILTIN, "")
        assert re.match(r"WARNING: \S+ extraction failed: ", body)
    elif not facts["excerpts"]:
        assert body.startswith("WARNING: ") or NOT_FOUND in body
        assert facts["found"] or NOT_FOUND in body


def check_accounts(model: LiveModel, session: Session) -> list[Op]:
    """One step for each request to the model, with what the provider counted beside what was sent; the sums are their sums."""
    looks = [step.name for step in operation(session).children if step.kind == "tool"]
    steps = [step for step in operation(session).children if step.kind != "tool"]
    assert steps
    assert set(looks) <= {"Read", "Grep"}
    for step in steps:
        facts = step.attributes
        assert (step.kind, step.name) == ("model", model.target)
        assert facts["tokensIn"] > 0
        assert 0 < facts["tokensOut"] <= OUTPUT
        assert 1 < facts["requestBytes"] / facts["tokensIn"] < 8
        assert 0.5 < facts["tokensInEstimated"] / facts["tokensIn"] < 1.5
        assert len(facts["response"].encode()) <= 4096
        assert step.latency > 0
    counted = session.counters
    failed = sum(step.status == "failed" for step in steps)
    assert (counted.extractions, counted.model_calls, counted.failed_model_calls) == (1, len(steps), failed)
    assert counted.input_tokens == sum(step.attributes["tokensIn"] for step in steps)
    assert counted.output_tokens == sum(step.attributes["tokensOut"] for step in steps)
    return steps


def check_that_it_looked(model: LiveModel, session: Session, steps: list[Op]) -> None:
    """Nobody reports about a file at the first step: without a call there is nothing to report."""
    assert len(steps) <= 15 * TRIES
    assert len(steps) >= 2 or operation(session).attributes["model"] != model.target


def check_records(folder: Path, kept: Kept) -> None:
    """`overspill verify` finds the stored bytes, and every quote on record, as they were."""
    (folder / "overspill").mkdir()
    (folder / "overspill" / "config.yaml").write_text(json.dumps({"storeDir": str(folder / "store")}))
    env = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-c", RUN, "verify", "--json"]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert json.loads(done.stdout) == [{"artifact_id": kept.artifact_id, "sound": True, "problem": ""}]
    assert done.returncode == 0


def check_everything(model: LiveModel, folder: Path, session: Session, kept: Kept, body: str) -> list[Op]:
    check_citations(session, kept, body)
    check_honesty(model, session, body)
    check_records(folder, kept)
    return check_accounts(model, session)


async def test_what_fits_one_chunk_is_read_whole(model: LiveModel, tmp_path: Path) -> None:
    async with opened(model, tmp_path) as session:
        kept = await keep(session, ONE_CHUNK)
        body = await ask(session, kept)
        steps = check_everything(model, tmp_path, session, kept, body)
        facts = operation(session).attributes
        assert (facts["mode"], facts["strategy"], facts["chunks"]) == ("auto", "full-chunked", "1/1")
        assert len(steps) == TRIES or steps[-1].status == "ok"


async def test_what_takes_more_chunks_is_explored_with_read_and_grep(model: LiveModel, tmp_path: Path) -> None:
    async with opened(model, tmp_path) as session:
        kept = await keep(session, TWO_CHUNKS)
        body = await ask(session, kept)
        steps = check_everything(model, tmp_path, session, kept, body)
        facts = operation(session).attributes
        assert (facts["mode"], facts["strategy"]) == ("auto", "read-grep")
        check_that_it_looked(model, session, steps)


async def test_every_chunk_is_read_and_the_reports_are_merged(model: LiveModel, tmp_path: Path) -> None:
    async with opened(model, tmp_path) as session:
        kept = await keep(session, TWO_CHUNKS)
        body = await ask(session, kept, "full-chunked")
        steps = check_everything(model, tmp_path, session, kept, body)
        facts = operation(session).attributes
        assert (facts["mode"], facts["strategy"]) == ("full-chunked", "full-chunked")
        searched, total = map(int, facts["chunks"].split("/"))
        if facts["model"] == model.target:
            assert total == 2
            assert ("Only 1 of 2 chunks were searched." in body) == (searched == 1)
        assert 2 <= len(steps) <= 3 * TRIES  # nothing is merged where no chunk held anything


async def test_a_small_output_is_explored_when_that_is_asked_for(model: LiveModel, tmp_path: Path) -> None:
    async with opened(model, tmp_path) as session:
        kept = await keep(session, ONE_CHUNK)
        body = await ask(session, kept, "read-grep")
        steps = check_everything(model, tmp_path, session, kept, body)
        assert operation(session).attributes["strategy"] == "read-grep"
        check_that_it_looked(model, session, steps)


async def test_both_ends_are_shown_without_asking_the_model(model: LiveModel, tmp_path: Path) -> None:
    async with opened(model, tmp_path) as session:
        kept = await keep(session, TWO_CHUNKS)
        body = await ask(session, kept, "truncate")
        assert body.startswith(TWO_CHUNKS[:50])
        assert body.endswith(TWO_CHUNKS[-50:])
        assert operation(session).attributes["strategy"] == "truncate"
        assert session.counters.model_calls == 0


async def test_snippets_are_the_stored_bytes_at_their_spans(model: LiveModel, tmp_path: Path) -> None:
    async with opened(model, tmp_path) as session:
        kept = await keep(session, ONE_CHUNK)
        reply = await session.invoke("get_tool_output", {"id": kept.artifact_id, "mode": "extract", "query": QUESTION})
        assert not reply.is_error, reply.text
        found = json.loads(reply.text)
        assert (found["source_hash"], found["source_size_bytes"]) == (kept.sha256, kept.size.bytes)
        assert 0 <= found["chunks_searched"] <= found["chunks_total"]
        assert 0 <= found["confidence"] <= 1
        for snippet in found["snippets"]:
            data = ONE_CHUNK.encode()[snippet["start_byte"] : snippet["end_byte"]]
            assert snippet["text"] == data.decode() == ONE_CHUNK[snippet["start_char"] : snippet["end_char"]]
        assert found["snippets"] or found["no_match_reason"] == NOT_FOUND
        if operation(session).attributes["model"] != model.target:
            assert re.match(r"full-chunked extraction failed: ", found["warnings"][0])
        check_accounts(model, session)
        check_records(tmp_path, kept)
