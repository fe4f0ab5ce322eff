"""W3C trace context goes through the proxy in `_meta`, so that one trace goes from the client to the server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from wire import Process, proxied

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params", {})
    if "id" not in asked:
        continue
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "traced", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "show_meta", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(params.get("_meta", {}))}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
CONTEXT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1,b=2", "baggage": "user=7"}


@pytest.mark.slow
def test_the_trace_context_of_a_client_reaches_the_server(tmp_path: Path):
    script = tmp_path / "traced.py"
    script.write_text(SERVER)
    with Process(proxied([sys.executable, str(script)])) as wire:
        wire.hello()
        result = wire.call("show_meta", {}, _meta=CONTEXT)
    seen = json.loads(result["content"][0]["text"])
    assert {key: seen.get(key) for key in CONTEXT} == CONTEXT
