"""What the reply to a stored output costs: in tokens, and in time for its images and for the same output again.

For a log, JSON records, and JSON with a screenshot in it, of 40 KB, 400 KB and 4 MB. In processor time, best of five: "images" is
the search for images as a share of the whole call, "again" a call whose output was shown before as a share of the first.
In tokens: "message" is the message without a preview as a share of the one in the preset `tool_output`, "stub" the reply to a
repeated output as a share of the first reply. Run: python benchmarks/gate/kept_replies.py
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable

import anyio

from overspill import Session, Settings
from overspill.gate.images import find_images
from overspill.text import tokens

SIZES = (40_000, 400_000, 4_000_000)
ROUNDS = 5


def make_log(size: int) -> str:
    line = "2026-11-15T04:40:00Z INFO request {} served in {} ms\n"
    return "".join(line.format(number, number % 97) for number in range(size // 55))


def make_records(size: int) -> str:
    return json.dumps([{"id": number, "name": f"item {number}", "text": "x" * 40} for number in range(size // 85)])


def make_screenshot(size: int) -> str:
    image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1280).to_bytes(4, "big") + (720).to_bytes(4, "big") + os.urandom(size * 3 // 4)
    return json.dumps({"url": "https://example.com", "screenshot": base64.b64encode(image).decode()})


def best(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


async def measure(make: Callable[[int], str], size: int) -> tuple[float, ...]:
    first: list[float] = []
    again: list[float] = []
    stubs: list[float] = []
    text = make(size)
    for _ in range(ROUNDS):
        async with Session() as session:
            await session.call("other", {}, lambda: "word " * 5_000)
            start = time.process_time()
            shown = await session.call("read", {}, lambda: text)
            first.append(time.process_time() - start)
            start = time.process_time()
            repeated = await session.call("read", {}, lambda: text)
            again.append(time.process_time() - start)
            stubs.append(tokens.count(repeated.text).tokens / tokens.count(shown.text).tokens)
    messages: list[int] = []
    for settings in (Settings(previewChars=0), Settings("tool_output")):
        async with Session(settings) as session:
            messages.append(tokens.count((await session.call("read", {}, lambda: make_log(size))).text).tokens)
    return best(lambda: find_images(text)) / min(first), min(again) / min(first), messages[0] / messages[1], stubs[0]


async def main() -> None:
    print(f"{'what':12}{'KB':>8}{'images':>10}{'again':>10}{'message':>10}{'stub':>10}")
    for make in (make_log, make_records, make_screenshot):
        for size in SIZES:
            shares = await measure(make, size)
            print(f"{make.__name__.removeprefix('make_'):12}{size // 1000:8,}" + "".join(f"{share:10.0%}" for share in shares))


if __name__ == "__main__":
    anyio.run(main)
