"""An MCP server over stdio whose tool `take` has the inputSchema that it was started with. Its other tool gives what was put in
its place, so that there is something large to refer to."""

from __future__ import annotations

import json
import sys
from typing import Any

_GREETING = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "schemas", "version": "1"}}


def answer(method: str, params: dict[str, Any], schema: Any) -> dict[str, Any] | None:
    if method == "initialize":
        return _GREETING
    if method == "tools/list":
        return {"tools": [{"name": "give", "inputSchema": {"type": "object"}}, {"name": "take", "inputSchema": schema}]}
    if method == "tools/call":
        text = params["arguments"]["text"] if params["name"] == "give" else "taken"
        return {"content": [{"type": "text", "text": text}]}
    return {} if method == "ping" else None


def main() -> None:
    schema = json.loads(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            found = answer(message["method"], message.get("params") or {}, schema)
            missing = {"error": {"code": -32601, "message": "Method not found"}}
            said = missing if found is None else {"result": found}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
