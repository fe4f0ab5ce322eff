"""A server as a child process: started in its own process group, talked to in lines, ended with all its children."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import Context
from typing import TypeAlias

import anyio
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from overspill.mcp.client.config import ServerConfig, open_process
from overspill.mcp.client.framing import BadLine, encode, error_reply, read_batches, take_last
from overspill.mcp.client.streams import Incoming
from overspill.text.humanize import count_noun, quote_line

_EXIT_SECONDS = 2.0  # seconds for the server to exit by itself once its input is closed
_LAST_OUTPUT_SECONDS = 0.5  # seconds to read its last output and to learn how it ended

Batch: TypeAlias = "list[SessionMessage]"
Streams: TypeAlias = "tuple[MemoryObjectReceiveStream[Batch], MemoryObjectSendStream[SessionMessage]]"


class ServerProcess:
    """One start of a server. `problem` says how it ended."""

    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process
        self._garbage = 0
        """How many lines were not messages."""
        self._has_closed_input = False
        self._reading = anyio.CancelScope()
        self.is_shared = False
        """Whether it works for several clients. What it writes to standard error may then be about any of them."""
        self._stderr_tail = b""
        self._stderr_ended = anyio.Event()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def restore(self, item: Incoming) -> Incoming:
        return item

    def find_failure(self, _: MCPError) -> None:
        """Always None: every error that a server process answers with is its own."""

    async def read_stderr(self) -> None:
        """Pass its standard error on to yours, and remember its end for error messages."""
        assert self._process.stderr is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for chunk in self._process.stderr:
                self._stderr_tail = (self._stderr_tail + chunk)[-2048:]
                Context().run(_show, chunk) if self.is_shared else _show(chunk)  # an empty context belongs to no front of a hub
        self._stderr_ended.set()

    async def watch_exit(self) -> None:
        """Stop reading soon after it exits. A child it left behind may hold its output open."""
        await _wait_until_gone(self._process, poll=0.1)
        self._reading.deadline = anyio.current_time() + _LAST_OUTPUT_SECONDS

    async def _wait_for_exit(self) -> None:
        """Wait until `problem` can say how it ended, or until it is clear that it still runs."""
        with anyio.move_on_after(_LAST_OUTPUT_SECONDS):
            await _wait_until_gone(self._process)
            await self._stderr_ended.wait()

    @property
    def problem(self) -> str:
        code = self._process.returncode
        how = (
            ("stopped reading its input" if self._has_closed_input else "closed its output")
            if code is None
            else f"ended with exit code {code}"
            if code >= 0
            else f"was ended by signal {-code}"
        )
        last_lines = [] if self.is_shared else self._stderr_tail.decode(errors="replace").strip().splitlines()
        last = f" Its last line on standard error: {quote_line(last_lines[-1])}" if last_lines else ""
        return f"The server {self._name} {how}.{last}{self.remark}"

    @property
    def remark(self) -> str:
        """A sentence to add to an error; empty if every line was a message."""
        lines = count_noun(self._garbage, "line")
        return f" It wrote {lines} to its standard output that could not be read as MCP." if self._garbage else ""

    async def read(self, to_us: MemoryObjectSendStream[Batch]) -> None:
        assert self._process.stdout is not None
        receive = self._process.stdout.receive
        async with to_us, aclosing(read_batches(receive)) as found:
            with self._reading:
                async for lines in found:
                    batch: Batch = []
                    while lines:  # one by one, because each may be large
                        message = take_last(lines)
                        if isinstance(message, BadLine):
                            self._garbage += 1
                            message = error_reply(message)
                        if message is not None:
                            batch.append(message)
                    if batch:
                        try:
                            await to_us.send(batch)
                        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                            break
                    message = None  # frees its content, which may be large
                    del batch
            await self._wait_for_exit()
        # Keep reading: a server that blocks on a full pipe could not exit by itself.
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while self._process.returncode is None:
                await receive()

    async def write(self, from_us: MemoryObjectReceiveStream[SessionMessage], to_us: MemoryObjectSendStream[Batch]) -> None:
        assert self._process.stdin is not None
        with from_us:
            try:
                async for each in from_us:
                    await self._process.stdin.send(encode(each.message))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                self._has_closed_input = True
                await self._wait_for_exit()
                to_us.close()  # it reads no requests, so no answer will come


@asynccontextmanager
async def start_process(config: ServerConfig, environ: dict[str, str]) -> AsyncGenerator[tuple[ServerProcess, Streams]]:
    """Start the server with exactly the environment `environ`. Raises ServerError if it cannot be started."""
    process = config.early.pop() if config.early else await open_process(config, environ)
    server = ServerProcess(config.name, process)
    to_us, incoming = anyio.create_memory_object_stream[Batch](0)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(server.read_stderr)
        group.start_soon(server.watch_exit)
        group.start_soon(server.read, to_us)
        group.start_soon(server.write, from_us, to_us)
        try:
            yield server, (incoming, outgoing)
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await _end(process)
            group.cancel_scope.cancel()


async def end_unused(servers: Iterable[ServerConfig]) -> None:
    """End processes that were started early and that no client asked for."""
    async with anyio.create_task_group() as group:
        for config in servers:
            while config.early:
                group.start_soon(_end, config.early.pop())


def _show(chunk: bytes) -> None:
    with suppress(AttributeError, OSError, ValueError):  # the host may have no stderr, or one that takes no bytes
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()


async def _end(process: Process) -> None:
    with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    await _wait_until_gone(process, _EXIT_SECONDS)
    if os.name == "posix":
        await terminate_posix_process_tree(process, _EXIT_SECONDS)
    elif process.returncode is None:
        process.kill()
    await _wait_until_gone(process, _EXIT_SECONDS)
    for pipe in (process.stdout, process.stderr):
        with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            if pipe is not None:
                await pipe.aclose()
    # asyncio keeps its end of a pipe open while any process holds the other end, and has no public way to close it.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


async def _wait_until_gone(process: Process, within: float = math.inf, poll: float = 0.01) -> None:
    """Wait until the process has exited. `wait` would also wait for its pipes, which a child left behind may hold open."""
    with anyio.move_on_after(within):
        while process.returncode is None:  # noqa: ASYNC110
            await anyio.sleep(poll)
