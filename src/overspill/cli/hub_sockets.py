"""The sockets of a hub: ask the hub that has them, or take them."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, NamedTuple

from overspill.cli import output
from overspill.errors import OverspillError
from overspill.hub import frames
from overspill.hub.place import NoHub, Place

_ANSWER_SECONDS, _END_SECONDS = 5.0, 20.0
_TAKE_SECONDS = 0.002


class HeldPlace(NamedTuple):
    place: Place
    lock: int
    listener: socket.socket
    http: socket.socket | None


def take_place(at: str | None, inherit: str | None, port: int | None) -> HeldPlace:
    """Return the place and sockets that our parent process already holds, or else take the place for this environment."""
    numbers = list(map(int, inherit.split(","))) if inherit else []
    for each in numbers:
        os.set_inheritable(each, False)
    http = socket.socket(fileno=numbers[2]) if len(numbers) > 2 else None
    try:
        place = Place.of(os.environ)
        if at and (http is None or at == place.socket):
            given = Place(os.path.dirname(at), os.path.basename(at).removesuffix(".sock"))
            return HeldPlace(given, numbers[1], socket.socket(fileno=numbers[0]), http)
        for each in numbers[:2]:  # of another version, whose fronts have their own place
            os.close(each)
        place.check()
        lock = place.take_lock()
        if lock is None and (not port or (ask(place, b"status") or {}).get("port")):
            raise OverspillError(f"A hub already runs at {place.socket}. Stop it with `{output.program()} hub stop`.")
        if port and http is None:
            from overspill.cli.hub_http import open_port

            http = open_port(port)
        deadline = time.monotonic() + _END_SECONDS
        while (lock := place.take_lock() if lock is None else lock) is None:  # fronts have started a hub, which has no port
            if time.monotonic() > deadline:
                raise OverspillError(f"The hub at {place.socket} does not end. Stop it with `{output.program()} hub stop`.")
            ask(place, b"restart")
            time.sleep(_TAKE_SECONDS)  # shorter than the fronts wait, which would start another
        return HeldPlace(place, lock, socket.socket(fileno=place.listen().detach()), http)
    except NoHub as problem:
        raise OverspillError(f"No hub can run: {problem}.") from None


def ask(place: Place, query: bytes, within: float = _ANSWER_SECONDS) -> dict[str, Any] | None:
    """Return a hub's answer; None if no hub is running. Raises OverspillError if it does not answer."""
    try:
        link = place.connect(within)
    except (OSError, NoHub):
        return None
    received = bytearray()
    try:
        link.sendall(frames.pack(frames.QUERY, query))
        while (frame := frames.unpack(received, 1 << 30)) is None:
            if not (data := link.recv(1 << 16)):
                return None
            received += data
    except TimeoutError:
        raise OverspillError(
            f"The hub at {place.socket} does not answer. End its process, and the next call starts another."
        ) from None
    except OSError:  # the hub ended at this moment
        return None
    finally:
        link.close()
    return json.loads(frame[1])
