"""How far the proxy's memory rises at its peak while a large result passes, beside the size of the result.

python benchmarks/proxy/memory.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = """
import json, sys
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
line = "2026-11-15T04:27:09Z INFO worker 17 finished job 4711 in 35 ms\\n"
for asked in map(json.loads, sys.stdin):
    method = asked.get("method")
    if method == "initialize":
        info = {"name": "large", "version": "1"}
        send(id=asked["id"], result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=asked["id"], result={"tools": [{"name": "large", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        size = asked["params"]["arguments"]["size"]
        send(id=asked["id"], result={"content": [{"type": "text", "text": (line * (size // len(line) + 1))[:size]}]})
    elif "id" in asked:
        send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
SIZES = 1_000_000, 10_000_000, 100_000_000
WARM_SECONDS = 4.0  # until the proxy has loaded what every large result needs, vocabulary included


def peak(pid: int) -> int:
    """KiB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def measure(size: int) -> float:
    overspill = str(Path(sys.executable).with_name("overspill"))
    command = [overspill, "proxy", "--quiet", "--set", "asyncTimeoutSecs=600", "--", sys.executable, "-c", SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(id: int, method: str, params: object) -> bytes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
            process.stdin.flush()
            return next(line for line in process.stdout if b'"result"' in line)

        ask(1, "initialize", HELLO)
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        ask(2, "tools/list", {})
        ready = time.monotonic() + WARM_SECONDS
        while time.monotonic() < ready:
            ask(3, "tools/call", {"name": "large", "arguments": {"size": 1_000_000}})
        before = peak(process.pid)
        assert b"too large" in ask(4, "tools/call", {"name": "large", "arguments": {"size": size}})
        rose = peak(process.pid) - before
        process.stdin.close()
    return rose * 1024 / size


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # what is kept here does not belong among the user's own outputs
        os.environ.setdefault("OVERSPILL_HUB", "off")  # what is measured is the proxy itself
        for size in SIZES:
            print(f"{size // 1_000_000:4} MB: {measure(size):.2f} x the result")


if __name__ == "__main__":
    main()
