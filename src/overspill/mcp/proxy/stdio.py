"""Serve over standard input and output, to the one client that started the proxy."""

from __future__ import annotations

import os
import select
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TypeAlias

import anyio
import anyio.to_thread
import mcp_types
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import BadLine, Receive, encode, read_batches, refusal, take_last
from overspill.mcp.client.handshake import ClientIdentity
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.proxy import build_protocol_server
from overspill.mcp.proxy.served_client import ServedClient
from overspill.mcp.proxy.served_clients import ServedClients

STDIO = "stdio"
"""The session of the only client."""
_READ_BYTES = 1 << 16
_WRITE_BYTES = getattr(select, "PIPE_BUF", 512)  # what a writable pipe takes without blocking
_MAX_WAITING_BYTES = 1 << 16  # of unread lines; beyond this, senders wait
_FLUSH_SECONDS = 2.0  # for the client to read the last answer when the proxy ends


Line: TypeAlias = SessionMessage | BadLine | None
Streams: TypeAlias = "tuple[MemoryObjectReceiveStream[SessionMessage | Exception], OutgoingStream]"


@asynccontextmanager
async def message_streams(
    receive: Receive, outgoing: OutgoingStream, take: Callable[[Line], Awaitable[None]] | None = None
) -> AsyncGenerator[Streams]:
    """Wrap a client's input and output in the streams that the SDK serves. A line that is not a message is answered with an
    error. `take` is called for each line before anything acts on it."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    reading, writing = anyio.CancelScope(), anyio.CancelScope(shield=True)

    async def read() -> None:
        async with to_server, aclosing(read_batches(receive)) as found:
            with reading:
                async for lines in found:
                    while lines:
                        message = take_last(lines)
                        if take is not None:
                            await take(message)
                        if isinstance(message, BadLine):
                            with suppress(anyio.ClosedResourceError):
                                await outgoing.send(refusal(message))
                        elif message is not None:
                            await to_server.send(message)

    async def write() -> None:
        with writing:
            try:
                await outgoing.write_all()
            except OSError:  # the client is gone
                reading.cancel()

    async with incoming, anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            await outgoing.aclose()
            writing.deadline = anyio.current_time() + _FLUSH_SECONDS
            group.cancel_scope.cancel()


class OutgoingStream(ObjectSendStream[SessionMessage]):
    """Lines on their way to the client. Waiting lines are written together; senders wait when there are too many."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        encode: Callable[[mcp_types.JSONRPCMessage], bytes] = encode,
    ) -> None:
        self._write = write
        self._encode = encode
        self._lines: list[bytes] = []
        self._bytes = 0
        self._changed = anyio.Event()
        self._is_closed = self._is_broken = False

    async def send(self, item: SessionMessage) -> None:
        while self._bytes > _MAX_WAITING_BYTES and not self._is_closed and not self._is_broken:
            await self._changed.wait()
        if self._is_closed:
            raise anyio.ClosedResourceError
        if not self._is_broken:  # the client would not read another line
            self._lines.append(self._encode(item.message))
            self._bytes += len(self._lines[-1])
            self._announce_change()

    async def write_all(self) -> None:
        """Write until the stream is closed and everything is written. Raises OSError once the client is gone."""
        try:
            while self._lines or not self._is_closed:
                if self._lines:
                    data, self._lines, self._bytes = b"".join(self._lines), [], 0
                    self._announce_change()
                    await self._write(data)
                else:
                    await self._changed.wait()
        finally:
            self._is_broken, self._lines = True, []
            self._announce_change()

    async def aclose(self) -> None:
        self._is_closed = True
        self._announce_change()

    def _announce_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def _read(source: int) -> bytes:
    """Read in a thread where readiness cannot be awaited: for regular files, and on Windows."""
    try:
        await anyio.wait_readable(source)
        return os.read(source, _READ_BYTES)
    except (OSError, ValueError, NotImplementedError):
        return await anyio.to_thread.run_sync(os.read, source, _READ_BYTES, abandon_on_cancel=True)


async def _write(target: int, data: bytes) -> None:
    """Write without blocking: a client that does not read must not keep the proxy from ending."""
    view = memoryview(data)
    while view:
        with suppress(BlockingIOError):
            if await _wait_writable(target):
                view = view[os.write(target, view[:_WRITE_BYTES]) :]
            else:
                view = view[await anyio.to_thread.run_sync(os.write, target, view, abandon_on_cancel=True) :]


async def _wait_writable(target: int) -> bool:
    """Wait until the client can take bytes. Returns False if that cannot be awaited, as in `_read`."""
    if hasattr(select, "poll"):  # asking first saves registering with the event loop for every line
        poll = select.poll()
        poll.register(target, select.POLLOUT)
        if poll.poll(0):
            return True
    try:
        await anyio.wait_writable(target)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


async def serve_stdio(clients: ServedClients, stop: anyio.Event, source: int = 0, target: int = 1) -> None:
    """Serve over two file descriptors until the client closes its end or `stop` is set."""
    streams = message_streams(lambda: _read(source), OutgoingStream(partial(_write, target)))
    await serve_streams(clients, stop, streams, outlived_by_jobs=False)


async def serve_streams(
    clients: ServedClients, stop: anyio.Event, streams: AbstractAsyncContextManager[Streams], *, outlived_by_jobs: bool
) -> None:
    """Serve a client over two streams. `outlived_by_jobs`: whether calls keep running when the client has gone."""

    async def find(_: ClientRequest, identity: ClientIdentity) -> ServedClient:
        return await clients.find(STDIO, identity, outlived_by_jobs=outlived_by_jobs)

    async def end() -> None:
        await stop.wait()
        group.cancel_scope.cancel()

    server = build_protocol_server(find)
    async with anyio.create_task_group() as group, streams as (incoming, outgoing):
        group.start_soon(end)
        await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
