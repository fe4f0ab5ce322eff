"""What the proxy costs, as ratios between things measured side by side in the same run.

latency   what it adds to a small call, beside what FastMCP's own proxy adds for the same server, over stdio and over HTTP
large     until a client has the handle of a 10 MB result, beside until a direct client has the result
load      20,000 calls, 200 at once from 20 clients over HTTP: wrong answers, memory, what is left behind
clients   the proxy's own memory for each further client of the older protocol, beside that of the client's server process

    python benchmarks/proxy/calls.py [latency] [large] [load] [clients] [--fastmcp PYTHON]

--fastmcp names an interpreter that has fastmcp installed; without it only our own figures are printed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
line = "2026-11-15T04:27:09Z INFO worker 17 finished job 4711 in 35 ms\\n"
@server.tool(structured_output=False)
def echo(text: str) -> str:
    return text
@server.tool(structured_output=False)
def large(size: int) -> str:
    return (line * (size // len(line) + 1))[:size]
if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
"""
PEER = """
import json, sys
from fastmcp.server import create_proxy
proxy = create_proxy({"mcpServers": {"bench": {"command": sys.argv[1], "args": [sys.argv[2]]}}})
if len(sys.argv) > 3:
    proxy.run(transport="http", host="127.0.0.1", port=int(sys.argv[3]), show_banner=False, log_level="error")
else:
    proxy.run(transport="stdio", show_banner=False, log_level="error")
"""
WARM, ROUNDS = 20, 300
TEN_MB = 10_000_000
CLIENTS, AT_ONCE, CALLS = 20, 200, 20_000


class Bench:
    """Scripts in a separate folder, and the processes started from them."""

    def __init__(self, folder: Path, fastmcp: str | None) -> None:
        self.folder = folder
        self.fastmcp = fastmcp
        self.server = folder / "server.py"
        self.peer = folder / "peer.py"
        self.server.write_text(SERVER)
        self.peer.write_text(PEER)
        self.overspill = str(Path(sys.executable).with_name("overspill"))

    @property
    def ways(self) -> dict[str, list[str]]:
        direct = [sys.executable, str(self.server)]
        ways = {"direct": direct, "overspill": [self.overspill, "proxy", "--quiet", "--", *direct]}
        if self.fastmcp:
            ways["fastmcp"] = [self.fastmcp, str(self.peer), *direct]
        return ways

    @asynccontextmanager
    async def stdio(self, command: Sequence[str], mode: str) -> AsyncIterator[Client]:
        parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
        with (self.folder / "errors.txt").open("a") as errors:
            async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
                yield client

    @asynccontextmanager
    async def listening(self, way: str) -> AsyncIterator[tuple[str, dict[str, str], int]]:
        """Address, headers and process id of a server that listens on loopback."""
        port, command = free_port(), self.ways[way]
        headers: dict[str, str] = {}
        if way == "overspill":
            command = [*command[:2], "--quiet", "--http", f"127.0.0.1:{port}", *command[3:]]
            headers = {"Authorization": "Bearer bench"}
        else:
            command = [*command, str(port)]
        environ = {**os.environ, "OVERSPILL_PROXY_TOKEN": "bench"}
        with (self.folder / "errors.txt").open("a") as errors:
            process = await anyio.open_process(command, env=environ, stdout=errors, stderr=errors)
        try:
            await reachable(port)
            yield f"http://127.0.0.1:{port}/mcp", headers, process.pid
        finally:
            process.terminate()
            with anyio.CancelScope(shield=True):
                await process.wait()

    @asynccontextmanager
    async def http(self, way: str, mode: str) -> AsyncIterator[Client]:
        async with self.listening(way) as (url, headers, _), connected(url, headers, mode) as client:
            yield client


@asynccontextmanager
async def connected(url: str, headers: dict[str, str], mode: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def reachable(port: int) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return
            except OSError:
                await anyio.sleep(0.1)


async def latency(bench: Bench) -> None:
    print(f"small call, {ROUNDS} interleaved rounds; what each proxy adds to a direct call, in ms (95 % interval of the median)")
    for transport in ("stdio", "http"):
        for mode in ("legacy", "auto"):
            times = await interleaved(bench, transport, mode)
            direct = times["direct"]
            for way in times:
                if way == "direct":
                    print(
                        f"  {transport:5} {mode:6} direct    p50 {quantile(direct, 0.5):6.2f}  p95 {quantile(direct, 0.95):6.2f}"
                    )
                    continue
                added = [each - base for each, base in zip(times[way], direct, strict=True)]
                low, high = interval(added)
                p50, p95 = quantile(added, 0.5), quantile(times[way], 0.95) - quantile(direct, 0.95)
                print(f"  {transport:5} {mode:6} {way:9} p50 {p50:+6.2f} ({low:.2f} to {high:.2f})  p95 {p95:+6.2f}")


async def interleaved(bench: Bench, transport: str, mode: str) -> dict[str, list[float]]:
    async with AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for way, command in bench.ways.items():
            opened = bench.stdio(command, mode) if transport == "stdio" else bench.http(way, mode)
            clients[way] = await stack.enter_async_context(opened)
        names = {way: "echo" if await has(client, "echo") else "bench_echo" for way, client in clients.items()}
        times: dict[str, list[float]] = {way: [] for way in clients}
        for number in range(WARM + ROUNDS):
            ways = list(clients)
            random.shuffle(ways)
            for way in ways:
                started = time.perf_counter()
                await clients[way].call_tool(names[way], {"text": "x" * 100})
                if number >= WARM:
                    times[way].append((time.perf_counter() - started) * 1000)
        return times


async def has(client: Client, tool: str) -> bool:
    return any(each.name == tool for each in (await client.list_tools()).tools)


async def large(bench: Bench) -> None:
    async with bench.stdio(bench.ways["direct"], "legacy") as direct, bench.stdio(bench.ways["overspill"], "legacy") as proxied:
        times: dict[str, list[float]] = {"direct": [], "overspill": []}
        for _ in range(6):
            for name, client in (("direct", direct), ("overspill", proxied)):
                started = time.perf_counter()
                result = await client.call_tool("large", {"size": TEN_MB})
                times[name].append(time.perf_counter() - started)
                assert ("too large" in result.content[0].text[:100]) is (name == "overspill")  # pyright: ignore
    whole, handle = statistics.median(times["direct"]), statistics.median(times["overspill"])
    print(f"10 MB result: direct {whole * 1000:.0f} ms, until the handle {handle * 1000:.0f} ms: {handle / whole:.2f} × (1.5)")


async def load(bench: Bench) -> None:
    for mode in ("legacy", "auto"):
        await load_in(bench, mode)


async def load_in(bench: Bench, mode: str) -> None:
    async with bench.listening("overspill") as (url, headers, pid), AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(url, headers, mode)) for _ in range(CLIENTS)]
        numbers = iter(range(CALLS))
        wrong: list[int] = []
        memory: list[tuple[int, int]] = []

        async def work(client: Client) -> None:
            for number in numbers:
                text = f"answer {number}"
                result = await client.call_tool("echo", {"text": text})
                if result.content[0].text != text:  # pyright: ignore
                    wrong.append(number)
                if number % 200 == 0:
                    memory.append((number, resident(pid)))

        before, started = len(children(pid)), time.perf_counter()
        async with anyio.create_task_group() as group:
            for number in range(AT_ONCE):
                group.start_soon(work, clients[number % CLIENTS])
        seconds = time.perf_counter() - started
        first, second = (max(size for at, size in memory if (at >= CALLS // 2) is late) for late in (False, True))
        running, files = len(children(pid)), len(os.listdir(f"/proc/{pid}/fd"))
        await stack.aclose()
        await anyio.sleep(3)
        after, files_after = len(children(pid)), len(os.listdir(f"/proc/{pid}/fd"))
        print(f"load {mode}: {CALLS} calls in {seconds:.0f} s ({CALLS / seconds:.0f}/s), {len(wrong)} wrong")
        print(f"  memory {first / 1024:.0f} MiB, then {second / 1024:.0f} MiB: {second / first - 1:+.1%} (at most +5 %)")
        print(f"  server processes {before} at the start, {running} at the end, {after} when all clients had left")
        print(f"  open files {files}, {files_after} when all clients had left")


async def clients(bench: Bench) -> None:
    """Each client has a separate server process."""
    async with bench.listening("overspill") as (url, headers, pid), AsyncExitStack() as stack:
        sizes: list[int] = []
        for _ in range(1 + CLIENTS):
            client = await stack.enter_async_context(connected(url, headers, "legacy"))
            await client.list_tools()
            await client.call_tool("echo", {"text": "x"})
            sizes.append(resident(pid))
        servers = [resident(child) for child in children(pid)]
    each = (sizes[-1] - sizes[0]) / CLIENTS
    server = statistics.mean(servers) if servers else 0
    print(f"{CLIENTS} more clients: {each:.0f} KiB each in the proxy ({sizes[0] / 1024:.0f} MiB with one)")
    print(f"  the server process of each: {server:.0f} KiB")


def resident(pid: int) -> int:
    """KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found.group(1)) if found else 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def interval(values: Sequence[float]) -> tuple[float, float]:
    chosen = random.Random(1)  # noqa: S311
    medians = sorted(statistics.median(chosen.choices(values, k=len(values))) for _ in range(500))
    return medians[12], medians[487]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"latency": latency, "large": large, "load": load, "clients": clients}
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="what to measure; everything if none is named")
    parser.add_argument("--fastmcp", help="an interpreter that has fastmcp")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # keeps these outputs out of the user's own for the week they last
        os.environ.setdefault("OVERSPILL_HUB", "off")  # what is measured is the proxy itself
        bench = Bench(Path(folder), given.fastmcp)
        for name in given.parts or parts:
            anyio.run(parts[name], bench)


if __name__ == "__main__":
    main()
