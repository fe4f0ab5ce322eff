"""A stream that ends before its time: what came is there, what happened is said, and nothing claims to be complete."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from overspill import Session, Settings

NOTE = "[The tool failed before it finished: {}. What it had produced by then is above or stored.]"


class HungUp(ConnectionError):
    pass


async def stream(lines: int) -> AsyncIterator[str]:
    text = content(lines)
    for start in range(0, len(text), 10_000):
        yield text[start : start + 10_000]
    raise HungUp("peer hung up")


def generator(lines: int) -> Iterator[bytes]:
    data = content(lines).encode()
    for start in range(0, len(data), 10_000):
        yield data[start : start + 10_000]
    raise HungUp("peer hung up")


def content(lines: int) -> str:
    return "".join(f"line {number:06}\n" for number in range(lines))


@pytest.mark.promise("failures-are-answers")
@pytest.mark.parametrize("tool", [stream, generator])
async def test_before_the_first_chunk_the_failure_is_the_answer(tmp_path: Path, tool: Any):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("tail", {"lines": 0}, tool)
        assert (reply.text, reply.is_error, reply.kept) == ("Tool failed: HungUp: peer hung up", True, None)


@pytest.mark.parametrize("tool", [stream, generator])
async def test_a_short_beginning_is_shown_with_what_happened(tmp_path: Path, tool: Any):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("tail", {"lines": 3}, tool)
        assert reply.text == f"{content(3)}\n\n{NOTE.format('HungUp: peer hung up')}"
        assert (reply.is_error, reply.kept, session.counters.kept) == (True, None, 0)


@pytest.mark.slow
@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("tool", [stream, generator])
@pytest.mark.parametrize("preset", ["overspill", "artifacts", "slow", "tool_output"])
async def test_five_megabytes_are_kept_with_what_happened(tmp_path: Path, tool: Any, preset: str):
    lines = 420_000
    async with Session(Settings(preset=preset, storeDir=str(tmp_path), **{"async": True})) as session:
        reply = await session.call("tail", {"lines": lines}, tool, background=False)
        assert reply.is_error
        assert reply.kept is not None
        assert reply.kept.missing == "the tool failed before it finished: HungUp: peer hung up"
        assert reply.text.endswith(NOTE.format("HungUp: peer hung up"))
        assert session.open(reply.kept.handle).text() == content(lines)
        assert session.counters.failed_calls == 1


async def test_a_process_that_dies_leaves_what_it_had_printed(tmp_path: Path):
    program = "import os, sys; sys.stdout.write('x' * 20_000); sys.stdout.flush(); os._exit(3)"

    async def run() -> AsyncIterator[bytes]:
        async with await anyio.open_process([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as process:
            assert process.stdout
            async for chunk in process.stdout:
                yield chunk
            if await process.wait():
                raise RuntimeError(f"exit status {process.returncode}")

    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("run", {}, run)
        assert reply.kept is not None
        assert session.open(reply.kept.handle).text() == "x" * 20_000
        assert reply.text.endswith(NOTE.format("RuntimeError: exit status 3"))


async def test_a_time_out_leaves_what_there_was(tmp_path: Path):
    async def endless() -> AsyncIterator[str]:
        yield "so far\n"
        await anyio.sleep_forever()

    async with Session(Settings(storeDir=str(tmp_path), toolTimeout=0.1)) as session:
        reply = await session.call("tail", {}, endless)
        assert reply.text == f"so far\n\n\n{NOTE.format('TimeoutError: not finished after 0.1 s (toolTimeout)')}"
