"""An MCP server that lists what a file says, letter by letter, and says the name of each tool that is called.

A line of the file for `server/discover` has what to add to its answer.

Usage: `lists.py legacy|modern FILE [http [sse]]`.
"""

import json
import sys
from pathlib import Path

ERA, FILE = sys.argv[1], Path(sys.argv[2])
VERSION = "2025-11-25"
ABILITIES = {"tools": {}, "prompts": {}, "resources": {}}


def answer(message: dict) -> str | None:
    """The line to send; None for a notification."""
    if "id" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    if method == ("initialize" if ERA == "modern" else "server/discover"):
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    match method:
        case "initialize":
            result = {"protocolVersion": VERSION, "capabilities": ABILITIES, "serverInfo": {"name": "lists", "version": "1"}}
        case "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": ABILITIES, "resultType": "complete"}
            result |= json.loads(page(method, params))
        case "tools/call":
            result = {"content": [{"type": "text", "text": f"called {params['name']}"}]}
        case _ if method.endswith("/list"):
            return f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"result":{page(method, params)}}}'
        case _:
            result = {}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


def page(method: str, params: dict) -> str:
    """The file has a line for each page of each list: the method, a space, the result."""
    pages = [line.partition(" ")[2] for line in FILE.read_text().splitlines() if line.startswith(f"{method} ")]
    key = {"resources/templates/list": "resourceTemplates"}.get(method, method.split("/")[0])
    return pages[int(params.get("cursor", 0))] if pages else json.dumps({key: []})


def serve_http() -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # noqa: PLC0415  # takes longer than all else

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            data = b"" if said is None else said.encode()
            self.send_response(202 if said is None else 200)
            if "sse" in sys.argv:
                data = b"event: message\r\ndata: " + data + b"\r\n\r\n"
            self.send_header("Content-Type", "text/event-stream" if "sse" in sys.argv else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    print(server.server_port, flush=True)
    server.serve_forever()


if "http" in sys.argv:
    serve_http()
for line in sys.stdin:
    said = answer(json.loads(line))
    if said is not None:
        print(said, flush=True)
