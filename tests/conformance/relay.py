"""Adds the bearer token for clients that cannot send one. In Host and Origin, its own port becomes that of the proxy."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

_MOST_HEAD = 1 << 16
_OURS = (b"connection:", b"authorization:")
_BROKEN = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.IncompleteRead)


@asynccontextmanager
async def relay(url: str, token: str) -> AsyncGenerator[str]:
    """The address to use instead of `url`."""
    target = urlsplit(url)
    host, port = str(target.hostname), int(target.port or 80)

    def _address(line: bytes) -> bytes:
        return line.replace(b":%d" % own, b":%d" % port) if line.lower().startswith((b"host:", b"origin:")) else line

    async def serve(client: SocketStream) -> None:
        with suppress(*_BROKEN):
            async with client, await anyio.connect_tcp(host, port) as server:
                incoming = BufferedByteReceiveStream(client)
                first, _, fields = (await incoming.receive_until(b"\r\n\r\n", _MOST_HEAD)).partition(b"\r\n")
                kept = [_address(line) for line in fields.split(b"\r\n") if not line.lower().startswith(_OURS)]
                # One request a connection, so that only this head has to be looked at.
                added = [b"Authorization: Bearer " + token.encode(), b"Connection: close"]
                await server.send(b"\r\n".join([first, *kept, *added, b"", b""]))
                await _both_ways(incoming, client, server)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        own = listener.listeners[0].extra_attributes[SocketAttribute.local_port]()
        group.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{own}{target.path}"
        group.cancel_scope.cancel()


async def _both_ways(incoming: BufferedByteReceiveStream, client: SocketStream, server: SocketStream) -> None:
    """Until either end has closed: a client that gives up must be seen to have given up."""

    async def up() -> None:
        with suppress(*_BROKEN):
            while True:
                await server.send(await incoming.receive())
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(up)
        with suppress(*_BROKEN):
            async for chunk in server:
                await client.send(chunk)
        group.cancel_scope.cancel()
