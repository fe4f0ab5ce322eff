"""The official npm package for tasks, in front of the proxy: it follows slow calls of any server, in either form of tasks.

It has no server. Its schemas check every answer about a task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from official import Node
from running import Overspill
from task_server import LARGE, TaskFolder, text
from wire import every

pytestmark = pytest.mark.slow

CLIENT = Path(__file__).parent / "clients" / "ext_tasks_client.mjs"
PEER = Path(__file__).parent.parent / "servers" / "tasks_of_sdk.py"
ASKED = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}


async def follow(home: Node, version: str, calls: Sequence[Any], overspill: Overspill, server: Sequence[str]) -> Any:
    proxy = overspill.proxy("--set", "asyncTimeoutSecs=0.05", "--", *server)
    client = [home.script("node")[0], str(CLIENT), str(home.home), version, json.dumps(calls), *proxy]
    with anyio.fail_after(90):
        done = await anyio.run_process(client, env=overspill.environ, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


async def test_it_follows_tasks_that_end_in_every_way(ext_tasks: Node, tmp_path: Path) -> None:
    tasks = TaskFolder(tmp_path / "s")
    tasks.set("large", status="completed", result=text(LARGE))
    tasks.set("failed", status="failed", error={"code": -32050, "message": "no more coal"})
    after = {"status": "completed", "result": {"resultType": "complete", **text("thanks")}}
    question = {"method": "elicitation/create", "params": ASKED}
    tasks.set("asks", status="input_required", inputRequests={"q1": question}, after=after)
    calls = [["work", {"name": name, "task": {"pollIntervalMs": 100}}] for name in ("large", "failed", "asks")]
    calls.append(["work", {"name": "never"}, True])
    server = tasks.server()
    found = await follow(ext_tasks, "2026-07-28", calls, Overspill(tmp_path), [str(server.command), *server.args])
    large, failed, asks, never = found["outcomes"]
    assert [each["kind"] for each in found["outcomes"]] == ["task"] * 4
    assert (large["status"], large["last"]) == ("completed", "completed")
    assert "Tool output is too large (246890 bytes" in large["said"]["content"][0]["text"]
    assert (failed["status"], failed["said"]) == ("failed", "no more coal")
    assert (asks["status"], asks["said"]["content"], found["asked"]) == ("completed", text("thanks")["content"], ["Which?"])
    assert tasks.said("tasks/update", "asks") == [[{"q1": {"action": "accept", "content": {"which": "this"}}}]]
    assert never["status"] == "cancelled"
    assert tasks.count("tasks/cancel", "never") == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_it_follows_a_slow_call_of_a_server_without_tasks(ext_tasks: Node, tmp_path: Path, era: str) -> None:
    calls = [["wait", {"until": "told", "then": "done"}], ["release", {"word": "told"}]]
    found = await follow(ext_tasks, "2026-07-28", calls, Overspill(tmp_path), every(era))
    waited = found["outcomes"][0]
    assert waited["status"] == "completed"
    assert waited["said"]["content"][0]["text"] == "done"


async def test_it_asks_for_tasks_of_2025_11_25(ext_tasks: Node, python: Callable[[str], Path], tmp_path: Path) -> None:
    server = [str(python("mcp-1.30") / "python"), str(PEER), "work"]
    calls = [["report", {"lines": 8000}], ["report", {}], ["wait", {}, True]]
    found = await follow(ext_tasks, "2025-11-25", calls, Overspill(tmp_path), server)
    large, small, waited = found["outcomes"]
    assert [each["kind"] for each in found["outcomes"]] == ["task"] * 3
    assert "Tool output is too large" in large["said"]["content"][0]["text"]
    assert small["said"]["content"] == [{"type": "text", "text": "line 0 of work\n"}]
    assert waited["status"] == "cancelled"
