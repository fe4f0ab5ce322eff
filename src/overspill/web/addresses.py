"""The socket that a web server listens on, and the names of its address."""

from __future__ import annotations

import socket

from overspill.errors import SettingsError

_MAX_QUEUED = 1024


def open_listener(host: str, port: int, advice: str = "") -> socket.socket:
    """Raises SettingsError, with the advice, if nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_MAX_QUEUED)
    except OSError as problem:
        why = str(problem.strerror).partition(" (while")[0]  # the rest repeats the address
        raise SettingsError(f"Cannot listen on {host}:{port}: {why}.{advice}") from None
    # Every connection inherits it. Without it, an answer in two parts waits 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    return listener


def bracket(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
