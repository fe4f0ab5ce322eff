"""A snapshot holds what was done: turns, requests, calls and what they were answered, extractions, agents below, accounts."""

from __future__ import annotations

import gzip
import json
import stat

import pytest
from agents import Stage, call, report, scripted
from frames import TOO_LARGE

from overspill import handles
from overspill.agent.record import append_accounting, snapshot, write_snapshot
from overspill.handles import artifact_id

pytestmark = pytest.mark.anyio


async def test_a_snapshot_tells_of_everything_that_was_done(stage: Stage) -> None:
    stage.write("below.ai", "models: test/below\ndescription: Counts.")
    agent = stage.write("a.ai", "tools: [depot]\nagents: [below.ai]\nextractionModel: null")
    model = scripted(
        call("depot__log", lines=2000),
        lambda s: call("tool_output", handle=s.handles[-1], extract="ERROR lines"),
        "The disk is full.",
        call("agent__below", prompt="How many?"),
        report("four errors"),
    )
    below = scripted(report("four"), name="test/below")
    record = await stage.run(agent, model, below)
    path = stage.folder / "run.json.gz"
    write_snapshot(path, record)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = json.loads(gzip.decompress(path.read_bytes()))
    assert (found["status"], found["turns"], found["report"]["content"]) == ("reported", 4, "four errors")
    # The question the documents ask of a snapshot, in jq: .opTree.turns[].ops[] | select(.kind == "tool")
    tools = [op for turn in found["opTree"]["turns"] for op in turn["ops"] if op["kind"] == "tool"]
    assert [(op["attributes"]["name"], op["response"][:24]) for op in tools] == [
        ("depot__log", TOO_LARGE),
        ("tool_output", "ABSTRACT FROM TOOL OUTPU"),
        ("agent__below", "four"),
        ("agent__final_report", "Your final report was ac"),
    ]
    assert tools[0]["attributes"]["tool_output_reason"] == "size_cap"
    assert handles.name(tools[0]["attributes"]["tool_output_handle"][-36:]) in tools[0]["response"]
    sessions = [op for turn in found["opTree"]["turns"] for op in turn["ops"] if op["kind"] == "session"]
    extraction, agent_below = sessions
    assert [op["response"][-17:] for op in extraction["ops"]] == ["The disk is full."]
    assert agent_below["agent"]["question"] == "How many?"
    assert agent_below["agent"]["opTree"]["turns"][0]["ops"][1]["response"] == "Your final report was accepted."
    assert found["totals"]["requests"] == 6
    assert [message["role"] for message in found["messages"]][:3] == ["user", "assistant", "tool"]
    assert "System Notice" not in json.dumps(found["messages"])
    accounts = stage.folder / "accounts.jsonl"
    append_accounting(accounts, record)
    entries = [json.loads(line) for line in accounts.read_text().splitlines()]
    assert entries == found["accounting"]
    assert {entry["type"] for entry in entries} == {"tool", "llm"}
    kept, asked, *_ = [entry for entry in entries if entry["type"] == "tool"]
    assert (kept["mcpServer"], kept["command"], kept["details"]["tool_output_reason"]) == ("depot", "log", "size_cap")
    assert (asked["command"], asked["details"]) == (
        "tool_output", {"artifact_id": artifact_id(kept["details"]["tool_output_handle"][-36:])},
    )  # fmt: skip
    assert asked["charactersOut"] == len(tools[1]["response"])
    in_extraction = [entry for entry in entries if "extraction" in entry]
    assert [(entry["type"], entry["model"]) for entry in in_extraction] == [("llm", "m")]
    assert sum(entry["type"] == "llm" for entry in entries) == found["totals"]["requests"]


async def test_a_failed_extraction_stands_in_the_turn_that_asked_for_it(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\nextractionModel: nowhere/reader\nextractionFallback: []")
    model = scripted(
        call("depot__log", lines=2000),
        lambda s: call("tool_output", handle=s.handles[-1], extract="ERROR lines", mode="full-chunked"),
        call("depot__words", count=1),
        report(),
    )
    first, second, *later = snapshot(await stage.run(agent, model))["opTree"]["turns"]
    extraction, retrieval = second["ops"][1:]
    kept = first["ops"][1]["attributes"]["tool_output_handle"]
    assert (extraction["kind"], extraction["status"], extraction["attributes"]) == (
        "session", "failed", {"name": "tool_output", "id": artifact_id(kept[-36:]), "mode": "full-chunked"},
    )  # fmt: skip
    assert [(op["kind"], op["status"]) for op in extraction["ops"]] == [("model", "failed")]
    assert (retrieval["kind"], retrieval["status"]) == ("tool", "failed")
    assert [op["kind"] for turn in later for op in turn["ops"]] == ["model", "tool", "model", "tool"]
