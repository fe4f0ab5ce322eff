"""Two proxies, two workers and 20 clients over one store and one queue; in mid-run, one proxy and one worker are killed.

    python benchmarks/stores/kill.py [--calls 5000] [--clients 20] [--store postgresql|s3]

Half of the clients call tools over HTTP, through any proxy that answers, as behind a load balancer. The others are sessions
whose tools run on the workers. Results have 10 bytes to 1 MB; one call in twenty takes up to four seconds.

At the end, every handle that was acknowledged is read from the store and hashed, every job has to have ended or to be reported,
and no lease may be left after its time. Starts its own servers.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import httpx2
from http_proxy import Listening, call
from store_servers import S3_BUCKET, S3_KEYS, run_postgres, run_queue, run_s3
from tool_workers import Workers

from overspill import Session, Settings
from overspill.record.events import OutputStored, decode_events
from overspill.store.open import open_store

RACE = 2.0  # asyncTimeoutSecs
HANDLE = re.compile(r"\bout_[0-9a-z]{6,12}\b")
JOB = re.compile(r"\bart_\w+\b")
LEASE = 32.0


def expected(count: int, prefix: str) -> str:
    """What both kinds of tools return."""
    return "".join(f"{prefix} {number}: the quick brown fox\n" for number in range(1, count + 1))


class Ledger:
    """What was acknowledged to a client."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.handles: dict[str, str] = {}  # name: SHA-256 of what the tool returned
        self.jobs: dict[str, str] = {}  # id: SHA-256
        self.seen = Counter[str]()

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def note(self, text: str, whole: str) -> None:
        digest = hashlib.sha256(whole.encode()).hexdigest()
        if text == whole:
            self.seen["passed"] += 1
        elif text.startswith("Tool Output ID"):
            self.seen["in the background"] += 1
            self.jobs[JOB.findall(text)[0]] = digest
        elif found := HANDLE.findall(text):
            self.seen["stored"] += 1
            self.handles[found[0]] = digest
        else:
            self.seen["failed: " + text[:60]] += 1


def choose(dice: random.Random) -> tuple[int, float]:
    """How many lines, and how many seconds."""
    count = dice.choice([1, 1, 5, 20, 1_000, 1_000, 3_000, 30_000]) if dice.random() < 0.98 else 30_000
    return count, dice.uniform(0.2, 4.0) if dice.random() < 0.05 else 0.0


async def call_proxies(ledger: Ledger, proxies: list[Listening], folder: Path, dice: random.Random) -> None:
    async with httpx2.AsyncClient(timeout=60) as http:
        while ledger.take():
            count, seconds = choose(dice)
            prefix = f"p{dice.randrange(10**9)}"
            whole = expected(count, prefix)
            name, arguments = "lines", {"count": count, "prefix": prefix}
            if seconds:
                file = folder / uuid.uuid4().hex
                whole = prefix
                name, arguments = "wait", {"then": prefix, "file": str(file)}
                asyncio.get_running_loop().call_later(seconds, file.touch)
            reasons: list[str] = []
            for proxy in dice.sample(proxies, len(proxies)):
                try:
                    answer = await http.post(proxy.url, **call(name, arguments))
                    answer.raise_for_status()
                except httpx2.HTTPError as error:  # as a load balancer does
                    reasons.append(str(error) or type(error).__name__)
                    continue
                found = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
                ledger.note((found[-1] if found else answer.json())["result"]["content"][0]["text"], whole)
                break
            ledger.seen["sent to the other proxy"] += bool(reasons)
            if len(reasons) == len(proxies):
                ledger.seen[f"answered by no proxy: {reasons}"] += 1


async def call_workers(ledger: Ledger, session: Session, folder: Path, dice: random.Random) -> None:
    while ledger.take():
        count, seconds = choose(dice)
        if seconds:
            place = folder / uuid.uuid4().hex
            place.mkdir()
            answer = f"w{dice.randrange(10**9)}"
            asyncio.get_running_loop().call_later(seconds, (place / "go").touch)
            tool = dice.choice(["slow", "safe"])
            reply = await session.call(tool, {"folder": str(place), "answer": answer})
            ledger.note(reply.text, answer)
        else:
            reply = await session.call("lines", {"count": count})
            ledger.note(reply.text, "".join(f"line {number}\n" for number in range(count)))


def read_all(store: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The SHA-256 of every stored output, hashed again, by name and by artifact id."""
    names: dict[str, str] = {}
    ids: dict[str, str] = {}
    for label in store.shelves():
        shelf = store.read_shelf(label.session)
        for event in decode_events(line for line in shelf.journal() if b'"event":"kept"' in line):
            if isinstance(event, OutputStored):
                reader = shelf.open(event.kept.id)
                digest = hashlib.sha256(reader.read(0, reader.size)).hexdigest()
                assert digest == event.kept.sha256
                names[event.kept.name], ids[event.kept.artifact_id] = digest, digest
                reader.close()
        shelf.close()
    return names, ids


async def check_jobs(ledger: Ledger, session: Session, proxy: Listening, stored: dict[str, str]) -> Counter[str]:
    ends = Counter[str]()
    async with httpx2.AsyncClient(timeout=300) as http:
        for id, digest in ledger.jobs.items():
            if stored.get(id) == digest:
                ends["whole"] += 1
                continue
            text = (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text
            if "Unknown" in text or "No stored output" in text:
                answer = await http.post(proxy.url, **call("get_tool_output", {"id": id, "mode": "raw"}))
                found = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
                text = (found[-1] if found else answer.json())["result"]["content"][0]["text"]
            ends["reported as interrupted" if "interrupted" in text else text[:60]] += 1
    return ends


async def run(store_url: str, queue: str, folder: Path, calls: int, clients: int) -> None:
    options = ("--store", store_url, "--set", f"asyncTimeoutSecs={RACE}", "--set", "waitMaxSecs=20")
    proxies = [Listening(folder, *options) for _ in range(2)]
    for proxy in proxies:  # or else a proxy waits until somebody reads what it says about each output
        assert proxy.process.stderr is not None
        threading.Thread(target=proxy.process.stderr.read, daemon=True).start()
    workers = Workers(folder, queue, store_url)
    for _ in range(2):
        workers.start(redelivery=10.0)
    store, ledger, dice = open_store(store_url), Ledger(calls), random.Random(7)  # noqa: S311
    sessions = [
        Session(Settings(asyncTimeoutSecs=RACE, repeats="full"), name="bench", store=store, jobs=queue)
        for _ in range(clients // 2)
    ]
    for session in sessions:
        await session.begin()

    async def kill_in_mid_run() -> None:
        while ledger.left > calls // 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        proxies[0].process.send_signal(signal.SIGKILL)
        workers.started[0].send_signal(signal.SIGKILL)
        print(f"  killed a proxy and a worker after {calls - ledger.left:,} calls", flush=True)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        group.create_task(kill_in_mid_run())
        for session in sessions:
            group.create_task(call_workers(ledger, session, folder, random.Random(dice.random())))  # noqa: S311
        for _ in range(clients - len(sessions)):
            group.create_task(call_proxies(ledger, proxies, folder, random.Random(dice.random())))  # noqa: S311
    seconds = time.perf_counter() - started
    print(f"  {calls:,} calls in {seconds:.0f} s: {dict(ledger.seen)}", flush=True)
    deadline = time.monotonic() + 3 * LEASE
    while any(session.running() for session in sessions[:1]) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(1)
    await asyncio.sleep(LEASE)  # so that the dead ones' leases are over
    names, ids = read_all(store)
    wrong = [name for name, digest in ledger.handles.items() if names.get(name) != digest]
    print(f"  {len(ledger.handles):,} acknowledged handles read and hashed: {len(wrong)} missing or wrong")
    print(f"  {len(ledger.jobs):,} jobs: {dict(await check_jobs(ledger, sessions[0], proxies[1], ids))}")
    for session in sessions:
        await session.close()
    workers.end()
    proxies[1].process.terminate()
    for proxy in proxies:
        proxy.process.wait(60)
    await asyncio.sleep(LEASE + 5)
    live = [label.session for label in store.shelves() if label.live]
    print(f"  leases left after their time: {len(live)}")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--store", choices=["postgresql", "s3"], default="postgresql")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        queue = stack.enter_context(run_queue())
        if given.store == "s3":
            port = stack.enter_context(run_s3(uuid.uuid4().hex))
            os.environ.update({**S3_KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"})
            url = f"s3://{S3_BUCKET}/{uuid.uuid4()}"
        else:
            url = stack.enter_context(run_postgres(uuid.uuid4().hex))
        print(given.store)
        asyncio.run(run(url, queue, folder, given.calls, given.clients))


if __name__ == "__main__":
    main()
