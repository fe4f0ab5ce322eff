"""A front that has reached a hub just before its end is not refused: the next hub serves it."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import pytest

import overspill
from overspill.hub import frames
from overspill.hub.place import Place
from overspill.hub.process import Front, Hub


@pytest.mark.anyio
@pytest.mark.parametrize("is_ending", [True, False])
async def test_only_a_hub_that_goes_on_decides(tmp_path: Path, is_ending: bool):
    async def serve(front: Front) -> None:
        front.link.post(frames.WELCOME)
        await anyio.wait_all_tasks_blocked()

    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    hub = Hub(Place.of(environ), serve, {}, tmp_path / "lists", 60, anyio.Event())
    hub._is_ending = is_ending
    here, there = socket.socketpair()
    with here:
        here.sendall(frames.pack_hello(["proxy"], str(tmp_path), [], overspill.__version__))
        with anyio.fail_after(30):
            await hub._greet(there)
        assert here.recv(1000) == (b"" if is_ending else frames.pack(frames.WELCOME))
