"""MCP servers of a few lines, started in no time: one that works, some that do not, one over HTTP that wants a header."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": "add", "description": "Adds two numbers.", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}},
    {"name": "log", "description": "A large text.", "inputSchema": {"type": "object"}},
]

HALF = {"tools": [7, {"name": "odd", "description": "half of one \ud83d", "inputSchema": None}]}


def answer(message: dict[str, Any], kind: str = "works") -> dict[str, Any] | None:
    """To a request; None to a notification."""
    method, more = message["method"], message.get("params") or {}
    page = TOOLS[1:] if "cursor" in more else TOOLS[:1]
    cursor = {} if "cursor" in more else {"nextCursor": "2"}
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {} if kind == "bare" else {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        },
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"},
        "ping": {},
        "tools/list": {"pages": {"tools": page, **cursor}, "null": {"tools": None}, "half": HALF}.get(kind, {"tools": TOOLS}),
        "tools/call": {"content": [{"type": "text", "text": "line\n" * 5000}]},
    }
    if "id" not in message:
        return None
    # One speaks only the newer protocol, the others only the older.
    if method not in results or method in (("initialize", "ping") if kind == "modern" else ("server/discover",)):
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}


def entry(kind: str) -> dict[str, Any]:
    """How a client's file names one of them."""
    return {"command": sys.executable, "args": ["-S", str(Path(__file__)), kind]}


@contextmanager
def over_http(header: str, value: str) -> Generator[str]:
    """Its URL. Without the header it answers 401."""

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers.get(header) != value:
                self.send_error(401)
                return
            said = answer(body)
            data = b"" if said is None else json.dumps(said).encode()
            self.send_response(202 if said is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def main(kind: str) -> None:
    if kind == "exits":
        sys.exit("small: no key given")
    for line in sys.stdin:
        if kind == "garbage":
            print("Server listening on stdio!", flush=True)
        if kind == "hangs":
            continue
        said = answer(json.loads(line), kind)
        if said is not None and kind != "garbage":
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
