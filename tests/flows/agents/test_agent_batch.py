"""A batch: several tools at the same time, tool_output among them, one JSON object with all results."""

from __future__ import annotations

import json

import pytest
from agents import Stage, call, report, scripted, seen
from extras import OFFERED
from frames import TOO_LARGE

pytestmark = pytest.mark.anyio


async def test_a_batch_runs_its_calls_and_tool_output_too(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]")

    def batch(*calls: tuple[str, dict]):
        entries = [{"id": str(n), "tool": tool, "parameters": args} for n, (tool, args) in enumerate(calls, 1)]
        return call("agent__batch", calls=entries)

    model = scripted(
        batch(("depot__log", {"lines": 2000}), ("depot__words", {"count": 2}), ("depot__fail", {})),
        lambda s: batch(
            ("tool_output", {"handle": handle_in(s.answers[-1]), "extract": "ERROR lines"}),
            ("agent__final_report", {"content": "x"}),
            ("depot__words", {}),
            ("nobody", {}),
        ),
        report(),
    )
    record = await stage.run(agent, model)
    first, second, third = seen(model)
    assert names_in_batch(second) == names_in_batch(first)
    assert names_in_batch(first) == [
        *first.tools[:6], *OFFERED, "agent__task_status",
    ]  # fmt: skip
    results = json.loads(second.answers[0])["results"]
    assert [(result["id"], result["tool"], result["ok"]) for result in results] == [
        ("1", "depot__log", True), ("2", "depot__words", True), ("3", "depot__fail", False),
    ]  # fmt: skip
    assert results[0]["output"].startswith(f"{TOO_LARGE} (42004 bytes")
    assert results[1]["output"] == "word0 word1"
    assert results[2]["error"] == {"message": "Error executing tool fail: no paper in the printer"}
    results = json.loads(third.answers[1])["results"]
    assert "00500 ERROR disk full" in results[0]["output"]
    assert [result["error"]["message"] for result in results[1:]] == [
        "agent__final_report cannot be called inside agent__batch. Call it by itself.",
        "depot__words was called without count. It takes: count, looking_for (optional).",
        f"There is no tool 'nobody'. Known tools: {', '.join(second.tools)}.",
    ]
    assert record.outcome.status == "reported"


def names_in_batch(seen) -> list[str]:
    (schema,) = [tool for tool in seen.request.tools if tool["name"] == "agent__batch"]
    return schema["parameters"]["properties"]["calls"]["items"]["properties"]["tool"]["enum"]


def handle_in(answer: str) -> str:
    return json.loads(answer)["results"][0]["output"].split('id="')[1].split('"')[0]
