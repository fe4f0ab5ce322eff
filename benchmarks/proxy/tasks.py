"""1,000 tasks of 20 clients, while the proxy and its servers are killed. Run: python benchmarks/proxy/tasks.py [--tasks N]

Each client has its own token, and so its own conversation. It calls tools of two servers that answer with tasks: `keeps` has its
tasks in files, `forgets` has them in memory. Meanwhile the proxy is killed (SIGKILL) three times, each server twice, and all are
started again. Then every client reads each of its results to the last byte, twice: before and after one more kill of the proxy.

lost        a result that a client once saw completed and that cannot be read, or has other bytes, afterwards
mixed up    a result that belongs to another task or client
unexplained a task that failed although its server had kept it, or without saying why. A call that the proxy began and that no
            server had made a task of yet is lost with the proxy; so is one whose task the proxy had not heard of yet
too soon    two requests about one task, less than the server's interval apart
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx2

META = "io.modelcontextprotocol/"
INTERVAL = 2.0
ON_THE_WAY = 1.0  # seconds
SERVER = r"""
import json, os, random, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

port, kind, folder, interval = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
memory, numbers, lock = {}, [0], threading.Lock()
log = (folder / "log").open("a", buffering=1)

def find(id):
    try:
        return json.loads((folder / id).read_text()) if kind == "keeps" and id.startswith("t-") else memory[id]
    except (OSError, KeyError):
        raise LookupError("Task not found") from None

def answer(method, params):
    if method == "server/discover":
        able = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": able}
    if method == "tools/list":
        return {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    then = "2026-01-01T00:00:00Z"
    dates = {"createdAt": then, "lastUpdatedAt": then, "ttlMs": 600_000, "pollIntervalMs": round(interval * 1000)}
    if method == "tools/call":
        with lock:
            numbers[0] += 1
            id = f"t-{numbers[0]}-{os.getpid()}"
        task = {"name": params["arguments"]["name"], "made": time.time()}
        task["ends"] = task["made"] + params["arguments"]["seconds"]
        if kind == "keeps":
            (folder / f"{id}.new").write_text(json.dumps(task))
            os.replace(folder / f"{id}.new", folder / id)
        else:
            memory[id] = task
        return {"resultType": "task", "taskId": id, "status": "working", **dates}
    log.write(json.dumps([time.time(), method, params["taskId"]]) + "\n")
    task = find(params["taskId"])
    if method != "tasks/get" or time.time() < task["ends"]:
        return {"taskId": params["taskId"], "status": "working", **dates}
    lines = "".join(f"{kind} {task['name']} line {number}\n" for number in range(800))
    return {"taskId": params["taskId"], "status": "completed", **dates, "result": {"content": [{"type": "text", "text": lines}]}}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(405); self.send_header("Content-Length", "0"); self.end_headers()
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            body = {"result": {"resultType": "complete", **answer(asked["method"], asked.get("params") or {})}}
        except LookupError as error:
            body = {"error": {"code": -32602, "message": str(error)}}
        data = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), **body}).encode()
        self.send_response(200); self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data))); self.end_headers(); self.wfile.write(data)

class Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

Server(("127.0.0.1", port), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Machine:
    """The proxy and its two servers, each of which can be killed and is then started again."""

    def __init__(self, folder: Path, clients: int) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in ("proxy", "keeps", "forgets")}
        self.tokens = [f"token-{number}-{secrets.token_hex(16)}" for number in range(clients)]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.starts = Counter[str]()
        self.kills: list[float] = []  # of the proxy
        for name in ("keeps", "forgets"):
            (folder / name).mkdir()
        urls = {name: {"url": f"http://127.0.0.1:{self.ports[name]}/mcp"} for name in ("keeps", "forgets")}
        (folder / "servers.json").write_text(json.dumps({"mcpServers": urls}))
        (folder / "server.py").write_text(SERVER)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['proxy']}/mcp"

    def start(self, name: str) -> None:
        self.starts[name] += 1
        environ = dict(os.environ)
        if name == "proxy":
            environ |= {f"TOKEN_{number}": token for number, token in enumerate(self.tokens)}
            tokens = itertools.chain.from_iterable(("--token-env", f"TOKEN_{number}") for number in range(len(self.tokens)))
            code = "from overspill.cli import main; main()"
            settings = ("--set", f"storeDir={self.folder / 'store'}", "--set", "asyncTimeoutSecs=0.2")
            where = ("--http", f"127.0.0.1:{self.ports['proxy']}", "--config", str(self.folder / "servers.json"))
            command = [sys.executable, "-c", code, "proxy", *where, *tokens, *settings]
        else:
            given = (str(self.ports[name]), name, str(self.folder / name), str(INTERVAL))
            command = [sys.executable, str(self.folder / "server.py"), *given]
        log = (self.folder / f"{name}.log").open("ab")
        self.running[name] = subprocess.Popen(command, env=environ, stdout=log, stderr=log)  # noqa: S603 - our own command

    def kill(self, name: str) -> None:
        if name == "proxy":
            self.kills.append(time.time())
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait()

    def kill_all(self) -> None:
        for name in self.running:
            self.kill(name)

    async def wait_for_proxy(self) -> None:
        async with httpx2.AsyncClient() as http:
            while True:
                try:
                    await http.get(self.url.replace("/mcp", "/health"))
                except httpx2.HTTPError:
                    await asyncio.sleep(0.1)
                else:
                    return


class CutOff(Exception):
    """No answer: the proxy was killed meanwhile."""


class Client:
    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.number = machine, number
        self.ids: dict[str, str] = {}
        self.completed: set[str] = set()
        self.failed: dict[str, str] = {}
        self.mixed_up = 0
        self.wrong = 0
        self._http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {machine.tokens[number]}"}, timeout=120)
        self._numbers = itertools.count(1)

    async def request(self, method: str, routed_by: str, /, **params: Any) -> dict[str, Any]:
        known = {
            META + "protocolVersion": "2026-07-28",
            META + "clientInfo": {"name": "bench", "version": "1"},
            META + "clientCapabilities": {"extensions": {META + "tasks": {}}},
        }
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": {**params, "_meta": known}}
        accepted = "application/json, text/event-stream"
        headers = {"Accept": accepted, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": routed_by}
        try:
            answer = await self._http.post(self.machine.url, json=body, headers=headers)
        except httpx2.HTTPError:
            raise CutOff from None
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith(("data: ", "{"))]
        found = [message for message in map(json.loads, filter(None, lines)) if "method" not in message]
        if not found:
            raise CutOff
        return found[-1]

    async def call(self, name: str, seconds: float) -> None:
        kind = name.split("-")[0]
        while name not in self.ids:
            try:
                found = await self.request(
                    "tools/call", f"{kind}__work", name=f"{kind}__work", arguments={"name": name, "seconds": seconds}
                )
            except CutOff:
                await asyncio.sleep(0.3)
                continue
            result = found.get("result", {})
            if result.get("resultType") == "task":
                self.ids[name] = result["taskId"]
            else:  # a server that is down is an answer
                await asyncio.sleep(0.3)

    async def follow(self, name: str) -> None:
        while True:
            await asyncio.sleep(random.uniform(1, 2))  # noqa: S311 - no secret
            try:
                found = await self.request("tasks/get", self.ids[name], taskId=self.ids[name])
                task = found.get("result")
                if task is None:
                    self.failed[name] = f"unknown: {found['error']['message']}"
                    return
                if task["status"] == "completed":
                    self.check(name, await self.read(task))
                    return
                if task["status"] in ("failed", "cancelled"):
                    self.failed[name] = task["error"]["message"]
                    return
            except CutOff:
                continue

    async def read(self, task: dict[str, Any]) -> str:
        """The stored output, to the last byte."""
        link = next((block["uri"] for block in task["result"]["content"] if block["type"] == "resource_link"), "")
        parts: list[str] = []
        while link:
            found = await self.request("resources/read", link, uri=link)
            contents = found["result"]["contents"]
            parts.append(contents[0]["text"])
            link = contents[1]["uri"] if len(contents) > 1 else ""
        return "".join(parts)

    def check(self, name: str, read: str) -> None:
        """Count what differs from what the server wrote."""
        expected = "".join(f"{name.split('-')[0]} {name} line {number}\n" for number in range(800))
        self.mixed_up += read != expected and " line " in read and not read.startswith(expected[: expected.index("line")])
        self.wrong += read != expected
        self.completed.add(name)

    async def work(self, count: int) -> None:
        names = [f"{'forgets' if number % 5 == 4 else 'keeps'}-{self.number}-{number}" for number in range(count)]

        async def one(name: str) -> None:
            await asyncio.sleep(random.uniform(0, 40))  # noqa: S311
            await self.call(name, random.uniform(1, 21))  # noqa: S311
            await self.follow(name)

        await asyncio.gather(*map(one, names))

    async def read_again(self) -> int:
        """How many completed results cannot be read any more."""
        lost = 0
        for name in list(self.completed):
            try:
                task = (await self.request("tasks/get", self.ids[name], taskId=self.ids[name])).get("result", {})
                lost += task.get("status") != "completed"
                if task.get("status") == "completed":
                    self.check(name, await self.read(task))
            except (CutOff, KeyError):
                lost += 1
        return lost


async def kill_some(machine: Machine, clients: list[Client], count: int) -> None:
    """Each when another eighth of the calls has become tasks, so that some run and some have ended."""
    names = ("proxy", "keeps", "forgets", "proxy", "keeps", "forgets", "proxy")
    for number, name in enumerate(names, 1):
        while sum(len(client.ids) for client in clients) < count * number // (len(names) + 1):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        machine.kill(name)
        await asyncio.sleep(0.5)
        machine.start(name)


class Polling:
    """What the servers noted about requests, and which tasks they were asked about."""

    def __init__(self, folder: Path, kills: list[float]) -> None:
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for kind in ("keeps", "forgets"):
            for line in (folder / kind / "log").read_text().splitlines():
                at, method, id = json.loads(line)
                if method == "tasks/get":
                    times[kind, id].append(at)
        gaps = [later - earlier for each in times.values() for earlier, later in itertools.pairwise(each)]
        self.requests = sum(map(len, times.values()))
        self.too_soon = sum(gap < INTERVAL for gap in gaps)
        kept = {file.name: json.loads(file.read_text()) for file in (folder / "keeps").glob("t-*") if file.suffix != ".new"}
        asked = {task["name"] for id, task in kept.items() if ("keeps", id) in times}
        # The answer with its id may be on the way for a while. After that, the next proxy has to follow it.
        known = {task["name"] for task in kept.values() for kill in kills if ON_THE_WAY < kill - task["made"] < INTERVAL * 5}
        self.followed = asked | known


def explains(name: str, why: str, followed: set[str]) -> bool:
    """A server that forgets lost the task, or the call did not get as far as a task: its proxy was killed, or its server down."""
    if "no longer has the task" in why:
        return name.startswith("forgets")
    return ("it was interrupted" in why or "The server" in why or "the server" in why) and name not in followed


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), given.clients)
        clients = [Client(machine, number) for number in range(given.clients)]
        try:
            for name in ("keeps", "forgets", "proxy"):
                machine.start(name)
            await machine.wait_for_proxy()
            began = time.monotonic()
            await asyncio.gather(
                kill_some(machine, clients, given.tasks), *(client.work(given.tasks // given.clients) for client in clients)
            )
            seconds = time.monotonic() - began
            machine.kill("proxy")
            machine.start("proxy")
            await machine.wait_for_proxy()
            lost = sum(await asyncio.gather(*(client.read_again() for client in clients)))
            polling = Polling(machine.folder, machine.kills)
        finally:
            machine.kill_all()
    failed = {name: why for client in clients for name, why in client.failed.items()}
    unexplained = {name: why for name, why in failed.items() if not explains(name, why, polling.followed)}
    unmade = sum("no longer" not in why for why in failed.values()) - len(unexplained)
    kills = {name: count - 1 for name, count in machine.starts.items()}
    print(f"{sum(len(client.ids) for client in clients):,} tasks of {given.clients} clients in {seconds:.0f} s; killed: {kills}")
    print(
        f"completed {sum(len(client.completed) for client in clients):,}; failed and said why {len(failed) - len(unexplained):,},"
    )
    print(f"of these {unmade} calls whose server was down, or that were killed before their server made a task of them")
    counts = {
        "lost": lost,
        "mixed up": sum(each.mixed_up for each in clients),
        "other bytes": sum(each.wrong for each in clients),
    }
    print(", ".join(f"{what} {count}" for what, count in (counts | {"unexplained": len(unexplained)}).items()))
    print(f"requests about tasks {polling.requests:,}, too soon {polling.too_soon}")
    for (kind, why), count in Counter((name.split("-")[0], why) for name, why in failed.items()).most_common():
        print(f"  {count} of {kind}: {why}")
    for name, why in unexplained.items():
        print("  unexplained:", name, why)


if __name__ == "__main__":
    asyncio.run(main())
