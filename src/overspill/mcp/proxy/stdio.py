"""Serve over standard input and output, to the one client that started the proxy."""

from __future__ import annotations

import os
import re
import select
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress

import anyio
import anyio.to_thread
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import BadLine, decode, encode, read_lines

_READ_BYTES = 1 << 16
_WRITE_BYTES = getattr(select, "PIPE_BUF", 512)  # what a writable pipe takes without blocking
_FLUSH_SECONDS = 2.0  # for the client to read the last answer when the proxy ends
_ID = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*(?:(\d{1,15})|"((?:[^"\\]){1,200})")\s*,\s*"method"')


@asynccontextmanager
async def stdio_streams(
    source: int, target: int
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]]:
    """Wrap two file descriptors in the streams that the SDK serves. A line that is not a message is answered with an error."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    answers = outgoing.clone()
    reading, writing = anyio.CancelScope(), anyio.CancelScope(shield=True)

    async def read() -> None:
        async with to_server, answers, aclosing(read_lines(lambda: _read(source))) as found:
            with reading:
                async for line in found:
                    if isinstance(line, bytes) and not line.strip():
                        continue
                    message = line if isinstance(line, BadLine) else decode(line)
                    if isinstance(message, BadLine):
                        await answers.send(SessionMessage(_error_reply(message)))
                    else:
                        await to_server.send(message)

    async def write() -> None:
        with from_server, writing:
            async for each in from_server:
                try:
                    if not reading.cancel_called:
                        await _write(target, encode(each.message))
                except OSError:  # the client is gone
                    reading.cancel()

    async with AsyncExitStack() as stack:
        stack.enter_context(incoming)
        stack.enter_context(outgoing)
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(read)
        group.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            outgoing.close()
            writing.deadline = anyio.current_time() + _FLUSH_SECONDS
            group.cancel_scope.cancel()


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
            if await _is_writable(target):
                view = view[os.write(target, view[:_WRITE_BYTES]) :]
            else:
                view = view[await anyio.to_thread.run_sync(os.write, target, view, abandon_on_cancel=True) :]


async def _is_writable(target: int) -> bool:
    """False if readiness cannot be awaited, as in `_read`."""
    try:
        await anyio.wait_writable(target)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


def _error_reply(line: BadLine) -> mcp_types.JSONRPCError:
    """Answer under the id of the request if it shows, so that the client does not wait forever."""
    found = _ID.search(line.head)
    code = mcp_types.PARSE_ERROR if found is None else mcp_types.INVALID_REQUEST
    id = None if found is None else int(found[1]) if found[1] else found[2].decode(errors="replace")
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=mcp_types.ErrorData(code=code, message=f"Received {line}."))
