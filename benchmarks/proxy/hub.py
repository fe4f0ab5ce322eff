"""What a hub saves and costs, beside proxies that work alone, in the same run.

memory    the PSS of 5 conversations with 10 servers each, by what wrap, wrap --one and wrap --hub-http
          write, beside proxies that work alone
shared    5 conversations with the same 10 servers: processes of servers and their PSS, shared and with a server for each
start     until a client has its tools: with a warm hub, with a cold one, alone, and from the server directly
calls     what a small call takes through a front and the hub, beside a proxy that works alone, and beside other proxies
busy      the same while another conversation stores one output of 10 MB after the other
together  200 calls at once from 20 conversations: wrong answers
kills     a hub that is killed in the middle of calls, 100 times: calls without an answer, stored outputs that are lost
many      2,000 conversations opened and closed in a day, whose clock is put forward: memory and descriptors of the hub

    python benchmarks/proxy/hub.py [PART…] [--kills N] [--conversations N] [--fastmcp PYTHON] [--mcp-proxy PROGRAM]

--fastmcp names an interpreter that has fastmcp installed, --mcp-proxy the program of that name; without them, `calls` measures
only our own. (mcp-proxy 0.13 needs `mcp<2`, so it needs an environment of its own.)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from hub_days import DayLoop, live, measure
from hubs import HubFront, HubHome, hub_home
from waiting import wait_until
from wire import every

from overspill.hub.memory import keep_memory_together

OVERSPILL = str(Path(sys.executable).with_name("overspill"))
SOMETIMES = random.Random(36)  # noqa: S311
FASTMCP = """
import sys
from fastmcp.server import create_proxy
proxy = create_proxy({"mcpServers": {"every": {"command": sys.argv[1], "args": sys.argv[2:]}}})
proxy.run(transport="stdio", show_banner=False, log_level="error")
"""
PARENT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


def pss(pid: int) -> float:
    """MB."""
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


def start(home: HubHome, *, hub: bool = True, own_parent: bool = False) -> HubFront:
    command = [OVERSPILL, "proxy", "--", *every()]
    parent = [sys.executable, "-S", "-c", PARENT] if own_parent else []
    client = HubFront([*parent, *command], {**home.env, "OVERSPILL_HUB": "on" if hub else "off"}, fork=None)
    client.hello()
    return client


def measure_memory() -> None:
    """Opens conversations in processes of their own, because a hub tells them apart by the process that starts their fronts."""
    for way in ("group", "one"):
        with hub_home() as home, ExitStack() as opened:
            for _ in range(5):
                command = [sys.executable, __file__, "converse", "--way", way]
                client = opened.enter_context(subprocess.Popen(command, env=home.env, stdin=PIPE, stdout=PIPE))  # noqa: S603
                assert client.stdin
                assert client.stdout
                opened.callback(client.stdin.close)
                assert client.stdout.readline() == b"ready\n"
            status = home.status()
            assert status is not None
            fronts = [pss(front["pid"]) for front in status["fronts"]]
            groups, hub = len({front["conversation"] for front in status["fronts"]}), pss(status["pid"])
        print(f"{groups} conversations, {way}: {len(fronts)} fronts, {statistics.median(fronts):.1f} MB each (median),", end=" ")
        print(f"hub {hub:.0f} MB, together {sum(fronts) + hub:.0f} MB")
    measure_http_memory()
    with hub_home() as home, ExitStack() as opened:
        alone = [pss(opened.enter_context(start(home, hub=False)).process.pid) for _ in range(5)]
    print(f"a proxy alone: {statistics.median(alone):.0f} MB, so 55 of them {55 * statistics.median(alone):,.0f} MB")


def measure_http_memory() -> None:
    from http_hubs import http_home, read, token  # noqa: PLC0415  # its packages are not those of a client over stdio
    from http_proxy import ByHand  # noqa: PLC0415

    with http_home() as home:
        commands = {f"server{number}": every("legacy", f"server{number}") for number in range(10)}
        file = home.write(**{name: {"command": command, "args": args} for name, (command, *args) in commands.items()})
        home.wrap()
        with home.hub(forked=False) as hub:
            for _ in range(5):
                client = ByHand(read(file)["servers"]["url"], token(file))
                client.post({"id": 2, "method": "tools/list"})
            print(f"5 conversations over HTTP: hub {pss(hub.pid):.0f} MB")


def converse(way: str) -> None:
    """Be a client with the entries that wrap writes for ten servers, until the end of standard input."""
    servers = {f"server{number}": every("legacy", f"server{number}") for number in range(10)}
    entries = [["proxy", "--name", name, "--group", "cursor", "--", *command] for name, command in servers.items()]
    env = {**os.environ, "OVERSPILL_HUB": "on"}
    if way == "one":
        listed = {name: {"command": command[0], "args": command[1:]} for name, command in servers.items()}
        env["SERVERS"] = json.dumps({"mcpServers": listed})
        entries = [["proxy", "--config-env", "SERVERS"]]
    else:
        entries += [["serve", "cursor"]]
    with ExitStack() as opened:
        for words in entries:
            front = opened.enter_context(HubFront([OVERSPILL, *words], env, fork=None))
            front.hello()
            front.result("tools/list")
        print("ready", flush=True)
        sys.stdin.read()


def measure_shared() -> None:
    for how in ("shared", "own"):
        with hub_home() as home, ExitStack() as opened:
            for number in [number for _ in range(5) for number in range(10)]:
                option = ["--share"] if how == "shared" else []
                command = [OVERSPILL, "proxy", *option, "--", *every("legacy", f"server{number}")]
                client = opened.enter_context(HubFront(command, {**home.env, "OVERSPILL_HUB": "on"}, fork=None))
                client.hello()
                client.call("lines", {"count": 1})
            status = home.status()
            assert status is not None
            pids = {server["pid"] for front in status["fronts"] for server in front["servers"]}
            sizes, hub = [pss(pid) for pid in pids], pss(status["pid"])
        print(f"servers of 5 conversations, {how}: {len(pids)} processes, {sum(sizes):.0f} MB; hub {hub:.0f} MB")


def time_to_tools(home: HubHome, *, hub: bool = True, direct: bool = False) -> float:
    began = time.perf_counter()
    command = every() if direct else [OVERSPILL, "proxy", "--", *every()]
    with HubFront(command, {**home.env, "OVERSPILL_HUB": "on" if hub else "off"}, fork=None) as client:
        client.hello()
        client.result("tools/list")
        return time.perf_counter() - began


def measure_start(rounds: int = 7) -> None:
    times: dict[str, list[float]] = {"direct": [], "warm": [], "alone": [], "cold": []}
    with hub_home() as home:
        time_to_tools(home)
        for _ in range(rounds):
            times["direct"].append(time_to_tools(home, direct=True))
            times["warm"].append(time_to_tools(home))
            times["alone"].append(time_to_tools(home, hub=False))
            home.overspill("hub", "stop")
            times["cold"].append(time_to_tools(home))
    middles = {name: statistics.median(found) for name, found in times.items()}
    for name, seconds in middles.items():
        print(f"tools {name}: {seconds:.2f} s ({seconds / middles['direct']:.1f} x)")


def measure_calls(fastmcp: str | None, mcp_proxy: str | None, rounds: int = 1000) -> None:
    with hub_home() as home, ExitStack() as opened:
        enter = opened.enter_context
        clients = {
            "hub": enter(start(home)),
            "alone": enter(start(home, hub=False)),
            "direct": enter(HubFront(every(), home.env, fork=None)),
        }
        clients["direct"].hello()
        peers = {} if not fastmcp else {"FastMCP": [fastmcp, "-c", FASTMCP, *every()]}
        peers |= {} if not mcp_proxy else {"mcp-proxy": start_mcp_proxy(mcp_proxy, home, opened)}
        for name, command in peers.items():
            clients[name] = enter(HubFront(command, {**home.env, "PYTHONPATH": ""}, fork=None))
            clients[name].hello()
        times = {name: list[float]() for name in clients}
        for number in range(rounds):
            for name in random.sample([*clients], len(clients)):
                began = time.perf_counter()
                clients[name].call("lines", {"count": 1})
                if number >= 50:
                    times[name].append(time.perf_counter() - began)
        for rank, place in (("median", 49), ("p95", 94)):
            found = {name: statistics.quantiles(values, n=100)[place] * 1000 for name, values in times.items()}
            each = ", ".join(f"{name} {value:.2f} ms" for name, value in found.items())
            print(f"small call, {rank}: {each} (hub {found['hub'] / found['alone']:.2f} x alone)")


def start_mcp_proxy(program: str, home: HubHome, opened: ExitStack) -> list[str]:
    """Start it as the only process for a server, and return the command that is a front of it, as ours is of the hub."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = opened.enter_context((home.folder / "mcp-proxy.txt").open("w"))
    command, env = [program, "--port", str(port), "--", *every()], {**home.env, "PYTHONPATH": ""}
    server = subprocess.Popen(command, stdout=log, stderr=log, env=env)  # noqa: S603
    opened.enter_context(server)
    opened.callback(server.terminate)
    wait_until(lambda: b"running on" in Path(log.name).read_bytes())
    return [program, "--transport", "streamablehttp", f"http://127.0.0.1:{port}/mcp"]


def measure_busy(rounds: int = 300) -> None:
    """Measures a small call next to a neighbour in the same hub, and next to a neighbour with a separate proxy."""
    for name, hub in (("hub", True), ("alone", False), ("hub", True), ("alone", False)):
        with hub_home() as home, start(home, hub=hub) as client, start(home, hub=hub, own_parent=True) as neighbour:
            times: list[float] = []
            done = threading.Event()

            def store(neighbour: HubFront = neighbour, done: threading.Event = done) -> None:
                while not done.is_set():
                    neighbour.call("lines", {"count": 350_000})

            storing = threading.Thread(target=store)
            storing.start()
            for _ in range(rounds):
                began = time.perf_counter()
                client.call("lines", {"count": 1})
                times.append(time.perf_counter() - began)
            done.set()
            storing.join()
            found = [statistics.quantiles(times, n=100)[place] * 1000 for place in (49, 94, 98)]
            print("beside a busy conversation, {}: median {:.1f} ms, p95 {:.0f} ms, p99 {:.0f} ms".format(name, *found))


def measure_together() -> None:
    with hub_home() as home, ExitStack() as opened, ThreadPoolExecutor(20) as pool:
        clients = [opened.enter_context(start(home, own_parent=True)) for _ in range(20)]

        def call(number: int) -> int:
            client = clients[number]
            ids = {each: client.begin("tools/call", tool_call(f"{number}-{each}", 2)) for each in range(10)}
            answers = {each: client.answer(id)["result"]["content"][0]["text"] for each, id in ids.items()}
            return sum(not text.startswith(f"{number}-{each} 1:") for each, text in answers.items())

        status = home.status()
        assert status is not None
        groups = {front["conversation"] for front in status["fronts"]}
        print(f"200 calls at once from {len(groups)} conversations: {sum(pool.map(call, range(20)))} wrong answers")


def tool_call(prefix: str, count: int) -> dict[str, object]:
    return {"name": "lines", "arguments": {"count": count, "prefix": prefix}}


def measure_kills(kills: int) -> None:
    """Each answer is right or says that the hub ended. What a client has the handle of is still there at the end."""
    unanswered, failed, wrong, kept = 0, 0, 0, list[tuple[str, str]]()
    with hub_home() as home, start(home) as client:
        for number in range(kills):
            status = home.status()
            assert status is not None
            ids = {f"{number}-{each}": client.begin("tools/call", tool_call(f"{number}-{each}", 3000)) for each in range(4)}
            killing = threading.Timer(SOMETIMES.random() * 2, os.kill, (status["pid"], signal.SIGKILL))
            killing.start()
            for prefix, id in ids.items():
                try:
                    answer = client.answer(id)
                except AssertionError:
                    unanswered += 1
                    continue
                links = [
                    block["uri"] for block in answer.get("result", {}).get("content", ()) if block["type"] == "resource_link"
                ]
                failed += "error" in answer and "hub ended" in answer["error"]["message"]
                wrong += "error" in answer and "hub ended" not in answer["error"]["message"]
                kept += [(prefix, uri) for uri in links]
            killing.join()
            client.call("lines", {"count": 1})
        read = [(prefix, client.request("resources/read", {"uri": uri})) for prefix, uri in kept]
        lost = sum(not (a.get("result") or {"contents": [{}]})["contents"][0].get("text", "").startswith(p) for p, a in read)
    print(f"{kills} kills, {4 * kills} calls: {len(kept)} stored, {failed} said that the hub ended, {wrong} other errors")
    print(f"{unanswered} without an answer, {lost} of {len(kept)} stored outputs lost")


def measure_many(conversations: int) -> None:
    async def live_a_day() -> None:
        async for number in live(home.env, conversations):
            if (number + 1) % (conversations // 10) == 0:
                held = measure()
                print(f"after {number + 1:,} conversations: {held.resident:.0f} MB, {held.files} descriptors,", end=" ")
                print(f"{held.blocks:,} blocks", flush=True)

    keep_memory_together()
    with hub_home() as home, asyncio.Runner(loop_factory=DayLoop) as runner:
        os.environ.update({name: home.env[name] for name in ("HOME", "XDG_RUNTIME_DIR", "TMPDIR")})
        runner.run(live_a_day())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["memory", "start", "calls", "together", "kills"])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--fastmcp")
    parser.add_argument("--mcp-proxy")
    parser.add_argument("--way", help=argparse.SUPPRESS)  # of `converse`, which the part `memory` starts
    given = parser.parse_args()
    for what in given.what:
        if what == "kills":
            measure_kills(given.kills)
        elif what == "many":
            measure_many(given.conversations)
        elif what == "converse":
            converse(given.way)
        elif what == "calls":
            measure_calls(given.fastmcp, given.mcp_proxy)
        elif what == "busy":
            measure_busy()
        else:
            parts = {"memory": measure_memory, "shared": measure_shared, "start": measure_start, "together": measure_together}
            parts[what]()


if __name__ == "__main__":
    main()
