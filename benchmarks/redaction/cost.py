"""What does looking for secrets cost? Run: python benchmarks/redaction/cost.py

Processor time: for each 100 KB of six kinds of text, for hostile texts of one, two and four times a size, and for keeping an
output and reading from it with `redact: {shown: on}` beside `off`, in turn.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import partial

import anyio

from overspill import Session, Settings
from overspill.redaction.redactor import Redactor

SOURCE = random.Random(3)  # noqa: S311
KNOWN = {"SERVICE_TOKEN": "blue-heron-4711-xyz"}
ROUNDS = 3
KB = 1_000


def repeat(make: Callable[[int], str], size: int) -> bytes:
    return "".join(make(number) for number in range(size // len(make(10)) + 1)).encode()[:size]


KINDS: dict[str, Callable[[int], str]] = {
    "log": lambda number: f"2026-01-02T03:04:05Z INFO worker[17] request {number} served in {number % 97} ms\n",
    "log with key=value": lambda number: (
        f"2026-01-02T03:04:05Z INFO worker[17] request {number} served in {number % 97} ms, key=user_{number}\n"
    ),
    "JSON": lambda number: json.dumps({"id": number, "name": f"n{number}", "token_count": number * 7, "ok": True}) + ",\n",
    "source code": lambda number: f"def get_{number}(self, key: str) -> str:\n    return self._tokens.get(key, {number})\n",
    "prose": lambda number: f"Chapter {number}. The secret of the old house was the key that nobody had seen. ",
    "hex": lambda number: random.Random(number).randbytes(48).hex() + "\n",  # noqa: S311
}
HOSTILE = {
    "names without values": lambda _: "api_key_token_secret_",
    "names and values": lambda number: f"api_key={number:x}a8f3k2z9q ",
    "keywords": lambda _: "ghp_sk-ant-AKIAxoxb-eyJ",
    "starts of a known value": lambda _: KNOWN["SERVICE_TOKEN"][:12],
    "starts of keys": lambda _: "-----BEGIN PRIVATE KEY-----\n",
}


def measure(action: Callable[[], object]) -> float:
    """Milliseconds, the least of a few rounds."""

    def once() -> float:
        start = time.process_time()
        action()
        return (time.process_time() - start) * 1_000

    return min(once() for _ in range(ROUNDS))


async def keep_and_read(place: str, text: str) -> None:
    async with Session(Settings(redact={"shown": place}), secrets=KNOWN) as session:
        reply = await session.call("t", {}, lambda: text)
        assert reply.kept is not None
        await session.invoke("get_tool_output", {"id": reply.kept.name, "mode": "grep", "pattern": "request 77 "})
        await session.invoke("get_tool_output", {"id": reply.kept.name, "mode": "slice", "slice": {"lines": "10-20"}})


def main() -> None:
    redactor = Redactor(KNOWN, {})
    for name, make in KINDS.items():
        data = repeat(make, 100 * KB)
        print(f"{name}: {measure(partial(redactor.find, data)):.2f} ms for 100 KB", flush=True)
    for name, make in HOSTILE.items():
        spent = [measure(partial(redactor.find, repeat(make, times * 100 * KB))) for times in (1, 2, 4)]
        print(f"hostile, {name}: {' / '.join(f'{each:.1f}' for each in spent)} ms for 100 / 200 / 400 KB", flush=True)
    for size in (100 * KB, 1_000 * KB, 10_000 * KB):
        text = repeat(KINDS["log"], size).decode()
        off, on = (measure(partial(anyio.run, keep_and_read, place, text)) for place in ("off", "on"))
        print(f"keep and read {size // KB:,} KB: off {off:.0f} ms, on {on:.0f} ms, {on / off:.2f} ×", flush=True)


if __name__ == "__main__":
    main()
