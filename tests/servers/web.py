"""An HTTP server that answers an MCP client by hand, so that it can misbehave: the path says how. Prints its port."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
UNSUPPORTED = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}}
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}

HALF = "half of one \ud83d"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        message = json.loads(body)
        method, way = message.get("method"), self.path.strip("/").split("?")[0]
        if way.isdecimal():
            self.reply(int(way), b"<h1>secret page</h1>", "text/html")
        elif way == "elsewhere":
            self.reply(307, b"", location="http://other.example/mcp?key=s3cret")
        elif way == "circle":
            self.reply(307, b"", location="/circle")
        elif way == "moved":
            self.reply(308, b"", location="/moved/here?key=s3cret")
        elif way == "modern" and method == "initialize":
            self.result(message, None, error=UNSUPPORTED, status=400)
        elif way == "modern" and method == "server/discover":
            self.result(message, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"})
        elif method == "tools/list":
            self.result(message, {"tools": [{"name": "echo", "inputSchema": MIRRORED}], "resultType": "complete"})
        elif method == "initialize":
            Answer.sessions += 1
            self.result(message, GREETING, **{"mcp-session-id": f"session-{Answer.sessions}"})
        elif method == "notifications/initialized":
            self.reply(202, b"")
        elif method == "tools/call":
            self.call(message, message["params"]["name"])
        else:
            self.result(message, None, error={"code": -32601, "message": "Method not found"}, status=404)

    def call(self, message: dict, name: str) -> None:
        session = self.headers["mcp-session-id"]
        match name:
            case "echo":
                seen = {"session": session, "headers": {key.lower(): value for key, value in self.headers.items()}}
                arguments = message["params"].get("arguments")
                self.result(message, {"content": [{"type": "text", "text": json.dumps([seen, arguments, self.path])}]})
            case "forget" | "forget_oddly" if session == "session-1":
                usual = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
                error = message["params"].get("arguments") or usual
                self.result(message, None, error=error, status=404 if name == "forget" else 400)
            case "forget" | "forget_oddly":
                self.result(message, {"content": [{"type": "text", "text": session}]})
            case "status":
                self.reply(message["params"]["arguments"]["status"], b"no", "text/plain")
            case "html":
                self.reply(200, b"<h1>Welcome</h1>", "text/html")
            case "garbage":
                self.reply(200, b'{"jsonrpc": "2.0", "id"', "application/json")
            case "sse_garbage":
                self.reply(200, b"event: message\ndata: {garbage\n\n", "text/event-stream")
            case "cut":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'{"jsonrpc"')
                self.close_connection = True
            case "sse_cut":
                self.reply(200, b": nothing\n\n", "text/event-stream")
            case "drop":
                self.close_connection = True
            case "half":
                self.result(message, {"content": [{"type": "text", "text": HALF}]})
            case "sse_half":
                told = {"method": "notifications/message", "params": {"level": "info", "data": HALF}}
                result = {"id": message["id"], "result": {"content": [{"type": "text", "text": HALF}]}}
                events = (f"data: {json.dumps({'jsonrpc': '2.0', **each})}\n\n" for each in (told, result))
                self.reply(200, "".join(events).encode(), "text/event-stream")
            case "refuse_half":
                self.result(message, None, error={"code": -32602, "message": HALF, "data": [HALF]}, status=400)
            case "refuse":
                self.result(message, None, error={"code": -32602, "message": "Bad arguments", "data": [1]}, status=400)
            case "huge":
                self.huge(int(message["params"]["arguments"]["size"]))

    def huge(self, size: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(size))
        self.end_headers()
        block = b"x" * 1_000_000
        try:
            for _ in range(size // len(block)):
                self.wfile.write(block)
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        print("ended", self.headers["mcp-session-id"], flush=True)
        self.reply(200, b"")

    def result(self, message: dict, result: object, *, error: object = None, status: int = 200, **headers: str) -> None:
        given = {"error": error} if error else {"result": result}
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **given}).encode()
        self.reply(status, body, "application/json", **headers)

    def reply(self, status: int, body: bytes, kind: str = "text/plain", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Its output is read by tests."""


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
