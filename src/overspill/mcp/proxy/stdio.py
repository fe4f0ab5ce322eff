"""Serve over standard input and output, to the one client that started the proxy."""

from __future__ import annotations

import os
import select
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress

import anyio
import anyio.to_thread
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import BadLine, encode, read_batches, refusal, take_last
from overspill.mcp.client.handshake import ClientIdentity
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.proxy import build_protocol_server
from overspill.mcp.proxy.served_client import ServedClient
from overspill.mcp.proxy.served_clients import ClientKey, ServedClients

_READ_BYTES = 1 << 16
_WRITE_BYTES = getattr(select, "PIPE_BUF", 512)  # what a writable pipe takes without blocking
_MAX_WAITING_BYTES = 1 << 16  # of lines that the client has not read, before those who send more wait
_FLUSH_SECONDS = 2.0  # for the client to read the last answer when the proxy ends


@asynccontextmanager
async def stdio_streams(
    source: int, target: int
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], OutgoingStream]]:
    """Wrap two file descriptors in the streams that the SDK serves. A line that is not a message is answered with an error."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    reading, writing = anyio.CancelScope(), anyio.CancelScope(shield=True)
    outgoing = OutgoingStream(target)

    async def read() -> None:
        async with to_server, aclosing(read_batches(lambda: _read(source))) as found:
            with reading:
                async for lines in found:
                    while lines:
                        message = take_last(lines)
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
    """Lines on their way to the client. Those that wait are written together; senders wait when there are many."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._lines: list[bytes] = []
        self._bytes = 0
        self._changed = anyio.Event()
        self._is_closed = self._is_broken = False

    async def send(self, item: SessionMessage) -> None:
        while self._bytes > _MAX_WAITING_BYTES and not self._is_closed and not self._is_broken:
            await self._changed.wait()
        if self._is_closed:
            raise anyio.ClosedResourceError
        if not self._is_broken:  # otherwise nobody reads it
            self._lines.append(encode(item.message))
            self._bytes += len(self._lines[-1])
            self._announce_change()

    async def write_all(self) -> None:
        """Write until the stream is closed and everything is written. Raises OSError once the client is gone."""
        try:
            while self._lines or not self._is_closed:
                if self._lines:
                    data, self._lines, self._bytes = b"".join(self._lines), [], 0
                    self._announce_change()
                    await _write(self._target, data)
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
    """Never block: a client that does not read must not keep the proxy from ending."""
    view = memoryview(data)
    while view:
        with suppress(BlockingIOError):
            if await _wait_writable(target):
                view = view[os.write(target, view[:_WRITE_BYTES]) :]
            else:
                view = view[await anyio.to_thread.run_sync(os.write, target, view, abandon_on_cancel=True) :]


async def _wait_writable(target: int) -> bool:
    """False if readiness cannot be awaited, as in `_read`."""
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
    """Serve until the client closes its end or `stop` is set."""

    async def find(_: ClientRequest, identity: ClientIdentity) -> ServedClient:
        return await clients.find(ClientKey("local", "stdio"), identity, outlived_by_jobs=False)

    async def end() -> None:
        await stop.wait()
        group.cancel_scope.cancel()

    server = build_protocol_server(find)
    async with anyio.create_task_group() as group, stdio_streams(source, target) as streams:
        group.start_soon(end)
        await server.run(*streams, server.create_initialization_options())
        group.cancel_scope.cancel()
