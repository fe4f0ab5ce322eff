"""Agents with a real model. It may do anything; what holds whatever it does is checked here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from live_model import LiveModel

from overspill.agent import Control, Record, Sources, load_agent, run_agent
from overspill.agent.snapshot import snapshot
from overspill.settings import Layer
from overspill.store.files import FileStore

pytestmark = [pytest.mark.live, pytest.mark.anyio]

WINDOW = 4096
OUTPUT = 256
FUNCTIONS = '''
import time

def parcel_log(depot: str = "Riga") -> str:
    """The log of a depot."""
    lines = [f"{8 + n // 60:02}:{n % 60:02} worker {n % 7} scanned a parcel" for n in range(200)]
    lines[150] = "10:30 parcel 7731 was not delivered because the street was flooded"
    return "\\n".join(lines)

def slow_count() -> str:
    """Counts all parcels. Takes a while."""
    time.sleep(2)
    return "7731 parcels"
'''


async def run(model: LiveModel, folder: Path, frontmatter: str, question: str, **more: Any) -> Record:
    (folder / "functions.py").write_text(FUNCTIONS)
    agent = folder / "agent.ai"
    agent.write_text(f"---\nmaxTurns: 4\ntoolResponseMaxBytes: 1500\n{frontmatter}\n---\nYou answer questions about parcels.\n")
    settings = model.settings(window=WINDOW, output=OUTPUT)
    limits = {model.target: {"contextWindow": WINDOW, "maxOutputTokens": OUTPUT}}
    loaded = load_agent(agent, Sources(files=(Layer("live", {"models": [model.target], "modelLimits": limits}),)))
    functions = {name: f"{folder / 'functions.py'}:{name}" for name in ("parcel_log", "slow_count")}
    store = FileStore(folder / "store")
    try:
        return await run_agent(loaded, question, functions=functions, endpoints=model.endpoints(settings), store=store, **more)
    finally:
        store.close()


def check(record: Record) -> None:
    """Every call has its answer, notices stay out, every request is on record with what it cost, and the run has an end."""
    waiting: list[str] = []
    for message in record.messages:
        if message.role == "tool":
            waiting.remove(message.call_id)
        else:
            assert waiting == []
            waiting = [call.id for call in message.calls]
        assert "# System Notice" not in message.text or message.role == "tool"
    found = snapshot(record)
    requests = [op for turn in found["opTree"]["turns"] for op in turn["ops"] if op["kind"] == "model"]
    assert len(requests) >= record.outcome.turns > 0
    assert all(op["attributes"]["tokensIn"] > 0 for op in requests if op["status"] == "ok")
    assert record.outcome.status in ("reported", "unreported")
    assert (record.outcome.report is not None) == (record.outcome.status == "reported")


async def test_a_large_output_is_kept_out_of_the_window(model: LiveModel, tmp_path: Path) -> None:
    record = await run(model, tmp_path, "", "Call parcel_log, then say which parcel was not delivered, and why.")
    check(record)
    assert all(len(message.text) < 4000 for message in record.messages)


async def test_a_slow_tool_does_not_hold_up_a_turn(model: LiveModel, tmp_path: Path) -> None:
    check(await run(model, tmp_path, "asyncTimeoutSecs: 0.2", "Call slow_count and say how many parcels there are."))


async def test_a_stop_ends_with_a_final_turn(model: LiveModel, tmp_path: Path) -> None:
    control = Control()

    def stop(_: object) -> None:
        control.stop()

    with anyio.fail_after(1200):
        record = await run(model, tmp_path, "", "Call parcel_log again and again.", control=control, observe=stop)
    check(record)
    assert record.outcome.early in ("the user asked you to stop.", "")
