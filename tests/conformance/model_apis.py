"""Stand-ins for the APIs that coding agents ask: on loopback, with a script of tool calls instead of a model."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, TypeAlias

Call: TypeAlias = tuple[str, dict[str, Any]]
_STORED = re.compile(r"\bout_[0-9a-z]{6,12}\b")


class ScriptedApi:
    """Asks for one tool call after the other. `NAME` in the arguments is the name of the first output that was stored."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.results: list[str] = []
        """What the model has been shown of each call, in order."""
        self.tools: list[str] = []
        self.asked = ""
        """The last request with tools, as text."""
        self.url = ""
        self._lock = Lock()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        """Content type and body."""
        raise NotImplementedError

    def note(self, results: Sequence[str], tools: Sequence[str]) -> Call | None:
        """The call to make next, or None after the last one."""
        with self._lock:
            if len(results) > len(self.results):
                self.results = list(results)
            self.tools = list(tools)
        if len(results) >= len(self.calls):
            return None
        name, arguments = self.calls[len(results)]
        stored = _STORED.search("\n".join(results))
        return name, {key: stored[0] if stored and value == "NAME" else value for key, value in arguments.items()}


class AnthropicApi(ScriptedApi):
    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        if "count_tokens" in path:
            return "application/json", b'{"input_tokens": 10}'
        blocks = [block for message in body.get("messages", []) for block in _blocks(message["content"])]
        results = [_text(block["content"]) for block in blocks if block.get("type") == "tool_result"]
        tools = [tool["name"] for tool in body.get("tools", [])]
        if "Bash" in tools:
            self.asked = json.dumps(body["messages"], ensure_ascii=False)
        call = self.note(results, tools) if "Bash" in tools else None
        block: dict[str, Any] = {"type": "text", "text": "done"}
        if call:
            block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": call[0], "input": call[1]}
        return write_message(body, [block])


def write_message(body: dict[str, Any], blocks: Sequence[dict[str, Any]]) -> tuple[str, bytes]:
    """An answer of Anthropic's API to this request: content type and body."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "x"),
        "content": blocks,
        "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not body.get("stream"):
        return "application/json", json.dumps(message).encode()
    return "text/event-stream", b"".join(_anthropic_events(message, blocks))


class GeminiApi(ScriptedApi):
    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        if "countTokens" in path:
            return "application/json", b'{"totalTokens": 10}'
        parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
        results = [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
        tools = [each["name"] for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
        call = self.note(results, tools) if "run_shell_command" in tools else None
        part: dict[str, Any] = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": "done"}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        data = json.dumps({"candidates": [candidate], "usageMetadata": usage})
        if "stream" in path:
            return "text/event-stream", f"data: {data}\r\n\r\n".encode()
        return "application/json", data.encode()


@contextmanager
def serving(api: ScriptedApi) -> Generator[None]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            try:
                self._send(200, *api.answer(self.path, body))
            except Exception as error:  # a script that fails is an API that refuses
                problem = {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}
                self._send(400, "application/json", json.dumps(problem).encode())

        def do_GET(self) -> None:
            self._send(404, "application/json", b"{}")

        def do_HEAD(self) -> None:
            self._send(200, "application/json", b"")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        api.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in _blocks(content))


def _anthropic_events(message: dict[str, Any], blocks: Sequence[dict[str, Any]]) -> Iterator[bytes]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
    for index, block in enumerate(blocks):
        delta: dict[str, Any] = {"type": "text_delta", "text": block.get("text", "")}
        start = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        if block["type"] == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}, {"type": "message_stop"}]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
