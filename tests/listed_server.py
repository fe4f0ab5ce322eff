"""An MCP server whose tools are in a file, which may change while it runs. A call answers with its name and arguments."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    file = Path(sys.argv[1])
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        given: dict[str, Any] = message.get("params") or {}
        if "id" not in message:
            continue
        tools = {tool["name"]: tool for tool in json.loads(file.read_text())}
        result: dict[str, Any] = {}
        if message["method"] == "initialize":
            info = {"name": "listed", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info}
        elif message["method"] == "tools/list":
            result = {"tools": [*tools.values()]}
        elif message["method"] == "tools/call":
            args = given.get("arguments") or {}
            missing = [key for key in tools.get(given["name"], {}).get("inputSchema", {}).get("required", []) if key not in args]
            said = (
                "\n".join(f"line {at}" for at in range(args["lines"])) if "lines" in args else json.dumps([given["name"], args])
            )
            if given["name"] not in tools:
                said = f"Unknown tool: {given['name']}"
            elif missing:
                said = f"missing {missing}"
            result = {"content": [{"type": "text", "text": said}], "isError": given["name"] not in tools or bool(missing)}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
