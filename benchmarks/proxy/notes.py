"""What passing on many progress notes costs, beside the same server directly. Run: python benchmarks/proxy/notes.py [rounds]

plain  a server that only writes lines, and a client that only reads them: what is left is the proxy's own work
SDK    a server and a client of the official SDK, as most users have them

Each figure is the best of all rounds, in elapsed time, because client, proxy and server work side by side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

PLAIN_SERVER = """
import json, sys
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        info = {"name": "notes", "version": "1"}
        send(id=asked["id"], result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=asked["id"], result={"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        token, count = asked["params"].get("_meta", {}).get("progressToken"), asked["params"]["arguments"]["count"]
        for number in range(count):
            note = {"progressToken": token, "progress": number, "total": count, "message": f"step {number} of {count}"}
            send(method="notifications/progress", params=note)
        send(id=asked["id"], result={"content": [{"type": "text", "text": "done"}]})
    elif "id" in asked:
        send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
"""
SDK_SERVER = """
from mcp.server.mcpserver import Context, MCPServer
server = MCPServer("notes")
@server.tool(structured_output=False)
async def work(count: int, ctx: Context) -> str:
    for number in range(count):
        await ctx.report_progress(number, count, f"step {number} of {count}")
    return "done"
server.run()
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
UNHURRIED = "--set", "asyncTimeoutSecs=600"  # a call that is answered early gets no more notes
COUNTS = 200, 2_000, 20_000
Measure = Callable[[Sequence[str], int], Awaitable[float]]


async def time_plain(command: Sequence[str], count: int) -> float:
    return await anyio.to_thread.run_sync(read_plainly, command, count)


def read_plainly(command: Sequence[str], count: int) -> float:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(id: int, method: str, params: object) -> list[bytes]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
            process.stdin.flush()
            lines: list[bytes] = []
            for line in process.stdout:
                lines.append(line)
                if b'"result"' in line:
                    break
            return lines

        ask(1, "initialize", HELLO)
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        ask(2, "tools/list", {})
        call: dict[str, object] = {"name": "work", "_meta": {"progressToken": 7}}
        ask(3, "tools/call", {**call, "arguments": {"count": 1}})  # what only the first call costs is not the notes'
        start = time.perf_counter()
        lines = ask(4, "tools/call", {**call, "arguments": {"count": count}})
        took = time.perf_counter() - start
        process.stdin.close()
    heard = [json.loads(line)["params"]["progress"] for line in lines[:-1]]
    assert heard == list(range(count)), "a note is missing or out of order"
    return took


async def time_sdk(command: Sequence[str], count: int) -> float:
    heard: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with Client(stdio_client(parameters), mode="legacy") as client:
        await client.list_tools()
        await client.call_tool("work", {"count": 0})
        start = time.perf_counter()
        await client.call_tool("work", {"count": count}, progress_callback=note)
        took = time.perf_counter() - start
    assert len(heard) == count, f"{len(heard)} of {count} notes arrived"
    return took


async def compare(name: str, code: str, measure: Measure, rounds: int) -> None:
    direct = [sys.executable, "-c", code]
    ways = {
        "direct": direct,
        "proxy": [str(Path(sys.executable).with_name("overspill")), "proxy", "--quiet", *UNHURRIED, "--", *direct],
    }
    for count in COUNTS:
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(rounds):
            for way, command in ways.items():
                best[way] = min(best[way], await measure(command, count))
        each = {way: took / count * 1e6 for way, took in best.items()}
        ratio = best["proxy"] / best["direct"]
        print(f"{name:5} {count:6,} notes: direct {each['direct']:4.0f} us, proxy {each['proxy']:4.0f} us each: {ratio:.2f} x")


async def compare_all(rounds: int) -> None:
    await compare("plain", PLAIN_SERVER, time_plain, rounds)
    await compare("SDK", SDK_SERVER, time_sdk, rounds)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # what the proxy keeps does not belong among the user's own outputs
        os.environ.setdefault("OVERSPILL_HUB", "off")  # what is measured is the proxy itself
        anyio.run(compare_all, int(sys.argv[1]) if len(sys.argv) > 1 else 5)


if __name__ == "__main__":
    main()
