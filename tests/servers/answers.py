"""An MCP server that answers each request with what a file of that method's name holds at the time.

Usage: `answers.py legacy|modern FOLDER`. The file for `resources/read` is `FOLDER/resources_read.json`, with `result` or
`error`. It may have `first`: messages to send before the answer. Tools say which requests came.
"""

import json
import sys
from pathlib import Path

ERA, FOLDER = sys.argv[1], Path(sys.argv[2])
ABILITIES = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "experimental": {"claude/channel": {}}}
INFO = {"name": "answers", "version": "1"}
MISSING = {"error": {"code": -32601, "message": "Method not found"}}
heard: list = []


def answer(method: str, params: dict) -> dict:
    heard.append([method, params.get("uri")])
    match method:
        case "initialize" if ERA == "legacy":
            return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": ABILITIES, "serverInfo": INFO}}
        case "server/discover" if ERA == "modern":
            return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": ABILITIES, "resultType": "complete"}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": json.dumps(heard)}], "resultType": "complete"}}
    file = FOLDER / f"{method.replace('/', '_')}.json"
    return json.loads(file.read_text()) if file.exists() else MISSING


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        said = answer(message["method"], message.get("params") or {})
        for first in said.pop("first", ()):
            print(json.dumps({"jsonrpc": "2.0", **first}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
