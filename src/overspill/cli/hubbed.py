"""The hub's work for one front: the same as `overspill proxy` does alone, for a client at the end of a socket."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from overspill.cli.program import prepare
from overspill.cli.serving import Prepared, SharedParts, serve
from overspill.cli.surroundings import Surroundings
from overspill.errors import OverspillError
from overspill.hub import frames
from overspill.hub.process import Front

if TYPE_CHECKING:
    from overspill.mcp.proxy.served_clients import ServedClients


async def serve_front(shared: SharedParts, front: Front) -> None:
    """Serve a front of a hub, with what all of them share."""
    around = Surroundings(front.environ, Path(front.folder), is_served=True, conversation=front.conversation)
    prepared = await anyio.to_thread.run_sync(prepare, front.words, around)  # a file may be on a disk that hangs
    if isinstance(prepared, Prepared) and (reason := find_refusal(prepared)):
        if front.is_answered:
            raise OverspillError(f"This proxy must be started again, because {reason}.")
        await front.link.write(frames.pack(frames.REFUSED, reason.encode()))
        return
    if not front.is_answered:
        front.link.post(frames.WELCOME)
    if not isinstance(prepared, Prepared):
        front.link.post(frames.EXIT, str(prepared if isinstance(prepared, int) else 0).encode())
        return
    await serve(prepared, anyio.Event(), partial(_serve_client, front), shared)


def find_refusal(prepared: Prepared) -> str:
    """Return why these settings need a separate process; empty if they do not."""
    settings = prepared.settings
    place = settings.store or settings.store_dir or ""
    if place.startswith("memory:") or settings.retention == "process":
        return "what it stores is not to outlive its process"
    is_relative = "://" not in place and not place.startswith("file:") and not os.path.isabs(place)
    return "its store is in the folder that the client happens to be in" if is_relative else ""


async def _serve_client(front: Front, clients: ServedClients, stop: anyio.Event) -> None:
    """Serve a front until its client has gone, and then until the client's jobs have ended."""
    from overspill.hub.lines import FrontLines
    from overspill.mcp.proxy.stdio import STDIO, serve_streams

    lines = FrontLines(front)
    front.describe = clients.describe_servers
    front.count_requests = lambda: len(lines.requests)
    front.drain = lines.drain
    if front.is_answered:
        await front.first.end(front.link)
    try:
        await serve_streams(clients, stop, lines.open(), outlived_by_jobs=True)
    finally:
        if clients.options.lists_folder:
            front.first.save()
    front.link.post(frames.EXIT, b"0")
    front.has_left = True
    await clients.outlast(STDIO)
