"""A server as a process of ours: started with its own process group, spoken to in lines, ended with all its children."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import anyio
import mcp_types
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from overspill.errors import ServerError
from overspill.mcp_client.config import ServerConfig
from overspill.mcp_client.lines import BadLine, decode, encode, lines

_GRACE = 2.0  # seconds to end by itself once its input is closed
_TAIL = 2048
_ID = re.compile(rb'"id"\s*:\s*(?:(\d{1,15})|"((?:[^"\\]|\\.){1,200})")')

Streams: TypeAlias = "tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]"


class Running:
    """One start of a server. `problem` says how it ended."""

    def __init__(self, config: ServerConfig, process: Process) -> None:
        self.config = config
        self.process = process
        self.garbage = 0
        """Lines that were no messages."""
        self._heard = b""

    async def hear(self) -> None:
        """Its standard error is for people: handed on, and its end remembered for when it fails."""
        assert self.process.stderr is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for chunk in self.process.stderr:
                self._heard = (self._heard + chunk)[-_TAIL:]
                with suppress(OSError, ValueError):
                    sys.stderr.buffer.write(chunk)
                    sys.stderr.buffer.flush()

    @property
    def problem(self) -> str:
        code = self.process.returncode
        how = (
            "closed its output"
            if code is None
            else f"ended with exit code {code}"
            if code >= 0
            else f"was ended by signal {-code}"
        )
        said = self._heard.decode(errors="replace").strip().splitlines()
        last = f" Its last words: {said[-1].strip()[:300]}" if said else ""
        spoke = f" It wrote {self.garbage} lines to its standard output that are no messages." if self.garbage else ""
        return f"The server {self.config.name} {how}.{last}{spoke}"


@asynccontextmanager
async def running(config: ServerConfig, environ: dict[str, str]) -> AsyncGenerator[tuple[Running, Streams]]:
    """`environ` is what the process gets, no more; ServerError where it cannot be started."""
    try:
        process = await anyio.open_process([config.command, *config.args], env=environ, cwd=config.cwd, start_new_session=True)
    except (OSError, ValueError) as problem:
        why = f"no such command {config.command!r}" if isinstance(problem, FileNotFoundError) else str(problem)
        raise ServerError(f"The server {config.name} cannot be started: {why}. Check its command and its folder.") from None
    server = Running(config, process)
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(server.hear)
        group.start_soon(_read, server, to_us)
        group.start_soon(_write, server, from_us, to_us)
        try:
            yield server, (incoming, outgoing)
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await _end(process)
            group.cancel_scope.cancel()


async def _read(server: Running, to_us: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    assert server.process.stdout is not None
    receive = server.process.stdout.receive
    with to_us:
        async for line in lines(receive):
            if isinstance(line, bytes) and not line.strip():
                continue
            found = line if isinstance(line, BadLine) else decode(line)
            if isinstance(found, BadLine):
                server.garbage += 1
                answer = _refused(found)
                if answer is None:
                    continue
                found = answer
            try:
                await to_us.send(found)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                break
    # A server that is still writing must not block on a full pipe, or it would miss its chance to end.
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            await receive()


def _refused(line: BadLine) -> SessionMessage | None:
    """An answer that cannot be taken is still the answer to somebody, who must not wait for ever."""
    if b'"method"' in line.head[:200]:
        return None
    found = _ID.search(line.head[:200]) or next(reversed(list(_ID.finditer(line.tail[-200:]))), None)
    if found is None:
        return None
    number, text = found.groups()
    error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=f"The server answered with {line}. Ask it for less.")
    return SessionMessage(
        mcp_types.JSONRPCError(jsonrpc="2.0", id=int(number) if number else text.decode(errors="replace"), error=error)
    )


async def _write(
    server: Running, from_us: MemoryObjectReceiveStream[SessionMessage], to_us: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    assert server.process.stdin is not None
    with from_us:
        try:
            async for each in from_us:
                await server.process.stdin.send(encode(each.message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            to_us.close()  # it reads no more, so nobody shall wait for its answers


async def _end(process: Process) -> None:
    with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    with anyio.move_on_after(_GRACE):
        # Not `wait`, which also waits for the end of its pipes: a child it left behind may hold those open.
        while process.returncode is None:  # noqa: ASYNC110
            await anyio.sleep(0.01)
    if os.name == "posix":
        await terminate_posix_process_tree(process, _GRACE)
    elif process.returncode is None:
        process.kill()
    with anyio.move_on_after(_GRACE):
        await process.wait()
    for pipe in (process.stdout, process.stderr):
        with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            if pipe is not None:
                await pipe.aclose()
