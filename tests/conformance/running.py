"""Real processes of the tests: one that says when it is ready, and the proxy in front of a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from commands import RUN, SOURCE

TOKEN = "0123456789abcdef"  # noqa: S105
_READY = 60  # seconds
_MOST_LINE = 1 << 20


@asynccontextmanager
async def running(command: Sequence[str], ready: str, environ: Mapping[str, str]) -> AsyncGenerator[str]:
    """What `ready` matches in the first line that it does match, as long as the process runs."""
    process = await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=environ)
    assert process.stdout is not None
    said = BufferedByteReceiveStream(process.stdout)

    async def drain() -> None:
        while True:
            try:
                await said.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return

    try:
        with anyio.fail_after(_READY):
            heard = await _first(said, ready)
        async with anyio.create_task_group() as group:
            group.start_soon(drain)
            yield heard
            process.terminate()
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def _first(said: BufferedByteReceiveStream, ready: str) -> str:
    lines: list[str] = []
    while True:
        try:
            line = (await said.receive_until(b"\n", _MOST_LINE)).decode()
        except anyio.IncompleteRead:
            raise AssertionError("It ended before it was ready:\n" + "\n".join(lines)) from None
        if found := re.search(ready, line):
            return found.group()
        lines.append(line)


def plain_environ() -> dict[str, str]:
    """Without what measures coverage, which makes each of many starts slow, and which other tests measure."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


class Overspill:
    """A user's place, with a store of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.environ = {
            **plain_environ(),
            "PYTHONPATH": str(SOURCE),
            "HOME": str(root),
            "XDG_CONFIG_HOME": str(root / "config"),
            "OVERSPILL_PROXY_TOKEN": TOKEN,
        }

    def proxy(self, *arguments: str, before: Sequence[str] = ()) -> list[str]:
        """In front of the server that `arguments` name."""
        store = f"storeDir={self._root / 'store'}"
        return [sys.executable, "-c", RUN, "proxy", "--set", store, *before, *arguments]
