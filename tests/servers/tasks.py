"""A server that offers tasks as its version of the protocol does. `python tasks.py legacy|modern [stubborn] [confused]`

It makes a task of a call whose client asked for one or declared the extension; a stubborn one makes one of every call, and a
confused one answers about another task. It uses nothing but the standard library: what goes over the wire is exactly what is
written here.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MODERN = sys.argv[1] == "modern"
STUBBORN = "stubborn" in sys.argv
META = "io.modelcontextprotocol/"
EXTENSIONS = {META + "tasks": {}, "x.example/other": {"a": 1}}
CAPABILITIES: dict[str, Any] = {"tools": {}, "extensions": EXTENSIONS, "experimental": {"x": {}, "tasks": {}, META + "tasks": {}}}
if not MODERN:
    CAPABILITIES["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
INFO = {"name": "tasks", "version": "1"}
REPORT = "".join(f"line {number}: the quick brown fox\n" for number in range(8000))
TASK = {"taskId": "t1", "status": "completed", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


class Tasks:
    def __init__(self) -> None:
        self.declared: dict[str, Any] = {}

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message and "method" in message:
                self.write({"id": message["id"], **self.answer(message["method"], message.get("params") or {})})

    def write(self, message: dict[str, Any]) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if MODERN:
            self.declared = params.get("_meta", {}).get(META + "clientCapabilities", {})
        match method:
            case "initialize" if not MODERN:
                self.declared = params["capabilities"]
                version = params["protocolVersion"]
                return {"result": {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}}
            case "server/discover" if MODERN:
                return self.complete({"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES})
            case "tools/list":
                execution = {"taskSupport": "optional", "x": 1}
                shown = [{"name": name, "inputSchema": {"type": "object"}} for name in ("report", "heard", "tell")]
                must = {"name": "must", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
                return self.complete({"tools": [{**shown[0], "execution": execution}, *shown[1:], must]})
            case "tools/call":
                return self.call(params)
            case "tasks/get" if MODERN:
                return self.complete({**TASK, "result": text(REPORT)})
            case "tasks/get":
                return {"result": {**TASK, **({"taskId": "t2"} if "confused" in sys.argv else {})}}
            case "tasks/cancel" if not MODERN:
                return {"result": {**TASK, "result": text(REPORT), "statusMessage": REPORT}}
            case "tasks/list" if not MODERN:
                return {"result": {"tasks": [{**TASK, "result": text(REPORT)}, {**TASK, "taskId": "t2"}, 5]}}
            case "tasks/result":
                return {"result": text(REPORT)}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        name = params.get("name")
        if name == "heard":
            said = {"capabilities": self.declared, "task": params.get("task")}
            return self.complete(text(json.dumps(said)))
        if name == "tell":
            kind = "notifications/tasks" if MODERN else "notifications/tasks/status"
            self.write({"method": kind, "params": {**TASK, "result": text(REPORT)}})
            return self.complete(text("told"))
        if name == "must" and not STUBBORN and "task" not in params:
            return {"error": {"code": -32601, "message": "This tool runs only as a task."}}
        has_extension = META + "tasks" in self.declared.get("extensions", {})
        if STUBBORN or (has_extension if MODERN else "task" in params):
            return {"result": {"resultType": "task", **TASK} if MODERN else {"task": TASK}}
        return self.complete(text(REPORT))

    def complete(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result} if MODERN else result}


if __name__ == "__main__":
    Tasks().run()
