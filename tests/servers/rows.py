"""An MCP server that answers with exactly the result that a call asks for, or with rows: for tests of what passes untouched."""

import json
import sys
import time

ROWS = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}, "required": ["rows"]}
TOOLS = [
    {"name": "rows", "inputSchema": {"type": "object"}, "outputSchema": ROWS},
    {"name": "huge", "inputSchema": {"type": "object"}},
    {"name": "give", "inputSchema": {"type": "object"}, "_meta": {"anthropic/maxResultSizeChars": 500_000}},
]


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def make_rows(count: int) -> dict:
    structured = {"rows": [{"id": number, "city": f"City {number % 7}", "sales": number * 3} for number in range(count)]}
    return {"content": [{"type": "text", "text": json.dumps(structured)}], "structuredContent": structured}


def answer(method: str, params: dict) -> dict:
    match method, params.get("name"):
        case "initialize", _:
            info = {"name": "rows", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list", _:
            return {"result": {"tools": TOOLS}}
        case "tools/call", "rows":
            args = params["arguments"]
            time.sleep(args.get("seconds", 0))
            return {"result": make_rows(args["count"])}
        case "tools/call", "huge":
            return {"result": {"content": [{"type": "text", "text": "x" * params["arguments"]["size"]}]}}
        case "tools/call", "image":
            return {
                "result": {"content": [{"type": "image", "data": "A" * params["arguments"]["size"], "mimeType": "image/png"}]}
            }
        case "tools/call", "give":
            return params["arguments"]
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        send(id=message["id"], **answer(message["method"], message.get("params") or {}))
