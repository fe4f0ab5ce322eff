"""The loops over the SDKs of OpenAI and Anthropic run, against a server that speaks their APIs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations-sdks.md").read_text("utf-8")
MAX_LOOP_LINES = 15


def program(name: str) -> str:
    (source,) = re.findall(rf"^```py {re.escape(name)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return source


class Provider(ThreadingHTTPServer):
    """A model that reads the log, asks for what it needs of it, and answers with that."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.requests: list[dict[str, Any]] = []


def find_results(messages: list[dict[str, Any]]) -> list[str]:
    contents = [message.get("content") for message in messages]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    answers = [message for message in messages if message["role"] == "tool"]
    return [each["content"] for each in answers + [block for block in blocks if block["type"] == "tool_result"]]


def decide(results: list[str]) -> tuple[str, Any] | str:
    if not results:
        return "read_log", {"day": "2026-11-16"}
    found = re.search(r"stored as (out_\w+)", results[-1])
    return ("tool_output", {"handle": found[1], "extract": "the order that was refused"}) if found else results[-1]


class Conversation(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        step = decide(find_results(request["messages"]))
        body = json.dumps(answer_openai(step) if self.path == "/chat/completions" else answer_anthropic(step)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None: ...


def answer_openai(step: tuple[str, Any] | str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step}
    if not isinstance(step, str):
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}


def answer_anthropic(step: tuple[str, Any] | str) -> dict[str, Any]:
    is_text = isinstance(step, str)
    block = {"type": "text", "text": step} if is_text else {"type": "tool_use", "id": "c1", "name": step[0], "input": step[1]}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "1", "type": "message", "role": "assistant", "model": "scripted", "content": [block], "usage": usage}
    return {**message, "stop_reason": "end_turn" if is_text else "tool_use"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.slow
def test_a_loop_without_a_framework_runs(name: str, provider: Provider, tmp_path: Path):
    (tmp_path / "logs.py").write_text(program("logs.py"), encoding="utf-8")
    (tmp_path / "program.py").write_text(program(name), encoding="utf-8")
    address = f"http://127.0.0.1:{provider.server_port}"
    place = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    environ = {f"{name.upper()}_BASE_URL": address, f"{name.upper()}_API_KEY": "none", **place}
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "order 4711 was refused: card expired" in ended.stdout
    assert len(provider.requests) == 3
    assert len(json.dumps(provider.requests[-1]["messages"])) < 20_000
    offered = [request["tools"] for request in provider.requests]
    assert offered[0] == offered[1] == offered[2]
    assert len(offered[0]) > 1


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_loop_is_short(name: str):
    _, _, loop = program(name).partition("with SyncSession")
    assert len(loop.splitlines()) <= MAX_LOOP_LINES
