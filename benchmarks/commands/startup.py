"""What starting costs, as ratios between things measured side by side in the same run.

    python benchmarks/commands/startup.py [rounds]

commands  `overspill --version` and `extract` on a small file beside `import click` and `import asyncio, click`, in processor time
proxy     until the first answer to tools/list, beside the same server directly and beside `import mcp`, in elapsed time

The proxy's servers start while it imports the MCP SDK, so its figures need two idle cores.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

RUN = [sys.executable, "-c", "from overspill.cli import main; main()"]
SDK_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool()
def echo(text: str) -> str:
    return text
server.run()
"""
PLAIN_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    elif asked.get("method") == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def processor_seconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_to_tools(command: Sequence[str], folder: Path) -> float:
    start, pipe = time.perf_counter(), subprocess.PIPE
    environ = {**os.environ, "XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environ) as process:  # noqa: S603
        assert process.stdin is not None
        assert process.stdout is not None

        def send(**message: object) -> None:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()

        send(id=1, method="initialize", params=HELLO)
        process.stdout.readline()
        send(method="notifications/initialized")
        send(id=2, method="tools/list")
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        took = time.perf_counter() - start
        process.stdin.close()
    return took


def elapsed(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True)  # noqa: S603
    return time.perf_counter() - start


def compare_commands(rounds: int, folder: Path) -> None:
    small = folder / "small.log"
    small.write_text("".join(f"INFO request {number} done\n" for number in range(40)) + "FATAL payments worker crashed\n")
    commands = {
        "import click": [sys.executable, "-c", "import click"],
        "--version": [*RUN, "--version"],
        "import asyncio, click": [sys.executable, "-c", "import asyncio, click"],
        "extract": [*RUN, "extract", "payments", str(small)],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            best[name] = min(best[name], processor_seconds(command))
    for ours, other in (("--version", "import click"), ("extract", "import asyncio, click")):
        print(f"{ours}: {best[ours] * 1000:.0f} ms, {best[ours] / best[other]:.2f} x {other} ({best[other] * 1000:.0f} ms)")


def compare_proxy(rounds: int, folder: Path) -> None:
    best: dict[str, float] = {}

    def note(name: str, took: float) -> None:
        best[name] = min(best.get(name, took), took)

    for _ in range(rounds):
        note("import mcp", elapsed([sys.executable, "-c", "import mcp"]))
        for name, code in (("SDK server", SDK_SERVER), ("plain server", PLAIN_SERVER)):
            server = [sys.executable, "-c", code]
            note(f"{name}, direct", seconds_to_tools(server, folder))
            note(f"{name}, proxy", seconds_to_tools([*RUN, "proxy", "--quiet", "--", *server], folder))
    for name, took in best.items():
        print(f"{name}: {took * 1000:.0f} ms")
    print(f"SDK server: {best['SDK server, proxy'] / best['SDK server, direct']:.2f} x direct")
    more = best["plain server, proxy"] - best["plain server, direct"]
    print(f"plain server: {more / best['import mcp']:.2f} x `import mcp` more than direct")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        compare_commands(rounds, Path(folder))
        compare_proxy(max(3, rounds // 2), Path(folder))


if __name__ == "__main__":
    main()
