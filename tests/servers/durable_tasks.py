"""A server of the protocol of 2026-07-28 that makes a task of every call of `work`, and keeps tasks in a folder.

`python durable_tasks.py FOLDER [dropped|away]`. A task is what FOLDER/NAME.json says, and works while there is no such file.
FOLDER/log has what the server heard, one JSON array a line. `dropped`: it knows no tasks, as after an update. `away`: it does
not start.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
KNOWS_TASKS = "dropped" not in sys.argv
if "away" in sys.argv:
    sys.exit("gone to lunch")
META = "io.modelcontextprotocol/"
TASKS = META + "tasks"
DATES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000}
CAPABILITIES = {"tools": {}, "extensions": {TASKS: {}} if KNOWS_TASKS else {}}


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.error = {"code": code, "message": message}


def note(*what: object) -> None:
    with (FOLDER / "log").open("a") as log:
        log.write(json.dumps([time.time(), os.getpid(), *what]) + "\n")


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def create(name: str, given: dict[str, Any]) -> dict[str, Any]:
    (FOLDER / f"{name}.known").write_text(json.dumps(given))
    return {"resultType": "task", "taskId": f"task-{name}", "status": "working", **DATES, **given}


def get(name: str) -> dict[str, Any]:
    known, state = FOLDER / f"{name}.known", FOLDER / f"{name}.json"
    if not known.exists():
        raise Refused(-32602, "Task not found")
    given = json.loads(known.read_text())
    return {
        "taskId": f"task-{name}",
        "status": "working",
        **DATES,
        **given,
        **(json.loads(state.read_text()) if state.exists() else {}),
    }


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("work", "pid", "flood")]
        return {"tools": tools, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        given = params.get("arguments") or {}
        if params["name"] == "pid":
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
        if params["name"] == "flood":
            for number in range(given["count"]):
                task = {"taskId": f"task-{number}", "status": "completed", **DATES, "result": {"content": []}}
                write({"method": "notifications/tasks", "params": task})
            return {"content": [{"type": "text", "text": "done"}]}
        declared = params["_meta"][META + "clientCapabilities"].get("extensions", {})
        note("call", given["name"])
        if not KNOWS_TASKS or TASKS not in declared:
            raise Refused(-32021, "Missing required client capability")
        return create(given["name"], given.get("task") or {})
    if method.startswith("tasks/") and KNOWS_TASKS:
        name = str(params.get("taskId")).removeprefix("task-")
        note(method, name, *([params["inputResponses"]] if "inputResponses" in params else []))
        if method == "tasks/get":
            return get(name)
        after = {"status": "cancelled"} if method == "tasks/cancel" else get(name).get("after", {"status": "working"})
        (FOLDER / f"{name}.json").write_text(json.dumps(after))
        return {}
    raise Refused(-32601, "Method not found")


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        try:
            done = {"result": {"resultType": "complete", **answer(message["method"], message.get("params") or {})}}
        except Refused as refusal:
            done = {"error": refusal.error}
        write({"id": message["id"], **done})
