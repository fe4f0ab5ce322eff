"""A server that has everything the protocol has, in either of its two forms, and does what it is told to.

`python every_server.py [legacy|modern [NAME [TOOL…]]]`, where tools named besides its own answer "theirs".
It uses nothing but the standard library: what goes over the wire is exactly what is written here.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import queue
import sys
import threading
from typing import Any

ERA = sys.argv[1] if len(sys.argv) > 1 else "legacy"
MODERN = ERA == "modern"
NAME = sys.argv[2] if len(sys.argv) > 2 else "every"
MORE = sys.argv[3:]
META = "io.modelcontextprotocol/"
INFO = {"name": NAME, "title": "Every", "version": "1.2.3", "websiteUrl": "https://example.com", "x-info": [1]}
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
    "experimental": {"x-thing": {"a": 1}},
}
OBJECT: dict[str, Any] = {"type": "object"}
MOOD = {"type": "object", "properties": {"mood": {"type": "string", "x-mcp-header": "Mood"}}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": OBJECT, **more}


FORECAST = {
    "type": "object",
    "properties": {"days": {"type": "array", "items": {"$ref": "#/$defs/Day"}}},
    "required": ["days"],
    "additionalProperties": False,
    "$defs": {"Day": {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}},
}
PAGES = [
    [
        tool("say", title="Say", annotations={"readOnlyHint": True, "x-hint": 1}, _meta={"x/y": {"z": None}}, xUnknown=[1, {}]),
        tool("fail", icons=[{"src": "data:,x", "mimeType": "image/png", "sizes": ["48x48"]}]),
        tool("lines", inputSchema={"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}),
        tool("forecast", outputSchema=FORECAST),
    ],
    [
        tool("steps"),
        tool("ask"),
        tool("notify"),
        tool("log"),
        tool("wait"),
        tool("release", inputSchema=MOOD),
        tool("seen"),
        tool("end"),
        tool("touch"),
        tool("pid"),
        tool("garbage"),
    ],
]
PROMPTS = [{"name": "greet", "arguments": [{"name": "who", "required": True, "x-a": 1}], "x-prompt": True}, {"name": "plain"}]
RESOURCES = [
    {"uri": "file:///notes.txt", "name": "notes", "mimeType": "text/plain", "size": 5, "x-resource": {"deep": [None]}},
    {"uri": "file:///pixel.png", "name": "pixel", "mimeType": "image/png"},
]
TEMPLATES = [{"uriTemplate": "note:///{id}", "name": "note", "x-template": 1}]
CONTENTS = {
    "file:///notes.txt": {"mimeType": "text/plain", "text": "notes"},
    "file:///pixel.png": {"mimeType": "image/png", "blob": base64.b64encode(b"\x89PNG\r\n").decode()},
}


class Refusal(Exception):
    def __init__(self, code: int, message: str, data: Any = ...) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is ... else {"data": data})}


class Every:
    def __init__(self) -> None:
        self.level = "emergency"
        self.heard: list[dict[str, Any]] = []
        self.released: dict[str, threading.Event] = {}
        self.calls: dict[Any, threading.Event] = {}
        self.answers: dict[Any, queue.Queue[dict[str, Any]]] = {}
        self.listens: dict[Any, dict[str, Any]] = {}
        self.numbers = itertools.count(1)
        self.writing = threading.Lock()

    def write(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        with self.writing:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self.answers.get(message["id"], queue.Queue()).put(message)
            elif "id" not in message:
                self.hear(message)
            else:
                threading.Thread(target=self.serve, args=(message,), daemon=True).start()
        os._exit(0)

    def hear(self, message: dict[str, Any]) -> None:
        self.heard.append({"method": message["method"], "params": message.get("params")})
        if NAME == "curious" and message["method"] == "notifications/initialized":
            threading.Thread(target=self.ask, args=({"method": "roots/list"},), daemon=True).start()
        if message["method"] == "notifications/cancelled":
            if gone := self.calls.get(message["params"]["requestId"]):
                gone.set()
            self.listens.pop(message["params"]["requestId"], None)

    def serve(self, request: dict[str, Any]) -> None:
        id, method, params = request["id"], request["method"], request.get("params") or {}
        gone = self.calls[id] = threading.Event()
        if method not in ("initialize", "server/discover", "tools/call"):
            self.heard.append({"method": method, "params": {key: value for key, value in params.items() if key != "_meta"}})
        try:
            result = self.answer(id, method, params)
        except Refusal as refusal:
            self.write({"id": id, "error": refusal.error})
            return
        except (TypeError, KeyError):
            self.write({"id": id, "error": {"code": -32602, "message": "Those are no parameters for that"}})
            return
        if result is not None and not gone.is_set():
            self.write({"id": id, "result": self.stamped(method, result)})

    def stamped(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        if not MODERN:
            return result
        cacheable = method.endswith("/list") or method in ("resources/read", "server/discover")
        caching = {"ttlMs": 1000, "cacheScope": "public"} if cacheable else {}
        meta = {META + "serverInfo": INFO, **result.get("_meta", {})}
        return {"resultType": "complete", **caching, **result, "_meta": meta}

    def answer(self, id: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if MODERN and (params.get("_meta") or {}).get(META + "protocolVersion") != "2026-07-28":
            raise Refusal(-32602 if method != "initialize" else -32601, "Only the stateless protocol is spoken here")
        if NAME == "stuck" and method.endswith("/list"):
            return None
        match method:
            case "initialize":
                version = params["protocolVersion"]
                said = {"instructions": "Be brief.", "x-greeting": {}}
                return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO, **said}
            case "server/discover" if MODERN:
                return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, "instructions": "Be brief."}
            case "ping" if not MODERN:
                return {}
            case "tools/list":
                last = params.get("cursor") == "more"
                more = [*PAGES[1], *map(tool, MORE)]
                return {"tools": more, "x-page": 2} if last else {"tools": PAGES[0], "nextCursor": "more", "x-page": 1}
            case "tools/call":
                name = params.get("name", "")
                if name in MORE:
                    return text("theirs")
                found = getattr(self, f"tool_{name}", None)
                if found is None:
                    raise Refusal(-32602, f"Unknown tool: {name}", {"name": name})
                return found(id, params, **(params.get("arguments") or {}))
            case "prompts/list":
                return {"prompts": PROMPTS, "x-list": 1}
            case "prompts/get":
                block = {"type": "text", "text": f"Greet {(params.get('arguments') or {}).get('who')}.", "x-block": 1}
                return {"description": "d", "messages": [{"role": "user", "content": block, "x-message": 2}], "x-result": 3}
            case "resources/list":
                return {"resources": RESOURCES}
            case "resources/templates/list":
                return {"resourceTemplates": TEMPLATES}
            case "resources/read":
                if params["uri"] not in CONTENTS:
                    raise Refusal(-32602 if MODERN else -32002, "Resource not found", {"uri": params["uri"]})
                return {"contents": [{"uri": params["uri"], **CONTENTS[params["uri"]], "x-contents": True}]}
            case "resources/subscribe" | "resources/unsubscribe" if not MODERN:
                return {}
            case "completion/complete":
                return {"completion": {"values": [params["argument"]["value"] + "lo"], "total": 1, "hasMore": False, "x": 1}}
            case "logging/setLevel" if not MODERN:
                if params["level"] not in LEVELS:
                    raise Refusal(-32602, "No such level", params["level"])
                self.level = params["level"]
                return {}
            case "subscriptions/listen" if MODERN:
                self.listens[id] = params["notifications"]
                meta = {META + "subscriptionId": id}
                self.notify("notifications/subscriptions/acknowledged", {"notifications": params["notifications"], "_meta": meta})
                return None
            case "x/echo":
                return {"echo": {key: value for key, value in params.items() if key != "_meta"}, "x": None}
            case _:
                raise Refusal(-32601, "Method not found", method)

    def notify(self, method: str, params: dict[str, Any] | None) -> None:
        self.write({"method": method, **({} if params is None else {"params": params})})

    def tool_say(self, _: Any, __: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Answers with the result it is given."""
        return result

    def tool_fail(self, _: Any, __: Any, **error: Any) -> dict[str, Any]:
        raise Refusal(**error)

    def tool_half(self, _: Any, params: dict[str, Any], fail: bool = False) -> dict[str, Any]:
        """Half of a character, in whatever a server can say."""
        half = "half of one \ud83d"
        self.notify("notifications/message", {"level": "info", "data": half})
        self.notify("notifications/progress", {**(params.get("_meta") or {}), "progress": 1, "message": half})
        if fail:
            raise Refusal(-32000, half, [half])
        return {**text(half), "structuredContent": {half: half}}

    def tool_lines(self, _: Any, __: Any, count: int, prefix: str = "line") -> dict[str, Any]:
        return text("".join(f"{prefix} {number}: the quick brown fox\n" for number in range(1, count + 1)))

    def tool_forecast(self, _: Any, __: Any, days: int) -> dict[str, Any]:
        value = {"days": [{"note": f"day {day} is dry"} for day in range(days)]}
        return {**text(json.dumps(value)), "structuredContent": value}

    def tool_steps(self, _: Any, params: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
        token = (params.get("_meta") or {}).get("progressToken")
        for step in steps if token is not None else []:
            self.notify("notifications/progress", {"progressToken": token, **step})
        return text(f"{len(steps)} steps, {'heard' if token is not None else 'unheard'}")

    def tool_ask(
        self, id: Any, params: dict[str, Any], requests: list[dict[str, Any]] = (), after: str = "", file: str = ""
    ) -> dict[str, Any] | None:
        """Asks the client, one after another; in the newer protocol all at once, by answering with the questions."""
        if after:
            self.released.setdefault(after, threading.Event()).wait()
        if MODERN:
            if "inputResponses" not in params:
                wanted = {f"q{number}": each for number, each in enumerate(requests)}
                return {"resultType": "input_required", "inputRequests": wanted, "requestState": "half way"}
            assert params["requestState"] == "half way"
            return text(json.dumps(list(params["inputResponses"].values())))
        token = (params.get("_meta") or {}).get("progressToken")
        answers: list[Any] = []
        for number in range(len(requests) + 1):
            if token is not None:
                self.notify("notifications/progress", {"progressToken": token, "progress": number})
            answers += [self.ask(requests[number])] if number < len(requests) else []
        return self.tool_wait(id, {}, then=json.dumps(answers), file=file) if file else text(json.dumps(answers))

    def ask(self, request: dict[str, Any]) -> Any:
        id = f"ask-{next(self.numbers)}"
        self.answers[id] = queue.Queue()
        self.write({"id": id, **request})
        answer = self.answers[id].get(timeout=30)
        return answer.get("result", answer.get("error"))

    def tool_notify(self, _: Any, __: Any, method: str, params: Any = None) -> dict[str, Any]:
        self.notify(method, params)
        return text("told")

    def tool_log(self, _: Any, params: dict[str, Any], level: str, data: Any) -> dict[str, Any]:
        least = (params.get("_meta") or {}).get(META + "logLevel") if MODERN else self.level
        if least is not None and LEVELS.index(level) >= LEVELS.index(least):
            self.notify("notifications/message", {"level": level, "logger": "every", "data": data, "x-message": 1})
        return text("logged")

    def tool_wait(
        self, id: Any, params: dict[str, Any], until: str = "", then: str = "released", file: str = "", begun: str = ""
    ) -> dict[str, Any] | None:
        """Until `release` is called with the same word, the file is there, or the call is cancelled. Makes the file `begun`."""
        if begun:
            open(begun, "x").close()
        if (token := (params.get("_meta") or {}).get("progressToken")) is not None:
            self.notify("notifications/progress", {"progressToken": token, "progress": 1, "total": 4, "message": "warming up"})
        event = self.released.setdefault(until, threading.Event())
        while not (event.wait(0.01) or (file and os.path.exists(file))):
            if self.calls[id].is_set():
                return None
        return text(then)

    def tool_release(self, _: Any, __: Any, word: str) -> dict[str, Any]:
        self.released.setdefault(word, threading.Event()).set()
        return text("released")

    def tool_seen(self, _: Any, __: Any, method: str = "") -> dict[str, Any]:
        found = [each for each in self.heard if each["method"].startswith(method)]
        return text(json.dumps(found))

    def tool_end(self, _: Any, __: Any, code: int = 3, words: str = "") -> dict[str, Any]:
        print(words, file=sys.stderr, flush=True)
        os._exit(code)

    def tool_pid(self, _: Any, __: Any) -> dict[str, Any]:
        return text(str(os.getpid()))

    def tool_garbage(self, _: Any, __: Any, lines: list[str]) -> dict[str, Any]:
        """Writes what is no message, between messages."""
        with self.writing:
            for line in lines:
                sys.stdout.buffer.write(line.encode() + b"\n")
        return text("clean again")

    def tool_touch(self, _: Any, __: Any, uri: str = "", kind: str = "") -> dict[str, Any]:
        """A resource, or a whole list, changes."""
        method = f"notifications/{kind}/list_changed" if kind else "notifications/resources/updated"
        params: dict[str, Any] = {} if kind else {"uri": uri}
        if not MODERN:
            self.notify(method, params or None)
        for id, wanted in self.listens.items() if MODERN else ():
            if wanted.get(f"{kind}ListChanged") or uri in wanted.get("resourceSubscriptions", ()):
                self.notify(method, {**params, "_meta": {META + "subscriptionId": id}})
        return text("touched")


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


if __name__ == "__main__":
    if NAME == "silent":
        threading.Event().wait()
    if NAME == "late":
        open(MORE[0], "rb").close()  # a pipe with a name: until somebody writes to it
    Every().run()
