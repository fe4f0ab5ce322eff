"""Real workers for tests of jobs: other processes, which run the tools below."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from overspill import Session, Settings
from overspill.store.open import open_store

TOOLS = '''
import os, time
from pathlib import Path

import anyio

from overspill import Output
from overspill.worker import WorkerTools

tools = WorkerTools()


@tools.register
async def echo(value):
    return value


@tools.register
def lines(count: int) -> str:
    return "".join(f"line {number}\\n" for number in range(count))


@tools.register
async def fail(text: str) -> str:
    raise OSError(text)


@tools.register
async def refuse(text: str) -> Output:
    return Output(text, is_error=True)


@tools.register
async def picture() -> Output:
    return Output([{"type": "text", "text": "a dot"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}])


@tools.register
async def stream():
    yield "first "
    yield "second "
    raise OSError("broke off")


async def _wait(folder: str, answer: str) -> str:
    """Say who runs it, and wait until there is a file named `go`."""
    Path(folder, f"began-{os.getpid()}-{time.time_ns()}").touch()
    try:
        while not Path(folder, "go").exists():
            await anyio.sleep(0.02)
    except BaseException:
        Path(folder, "cancelled").touch()
        raise
    finally:
        Path(folder, f"ended-{os.getpid()}-{time.time_ns()}").touch()
    return answer


@tools.register
async def slow(folder: str, answer: str = "done") -> str:
    return await _wait(folder, answer)


@tools.register(repeatable=True)
async def safe(folder: str, answer: str = "done") -> str:
    return await _wait(folder, answer)


@tools.register(max_running=1)
async def alone(folder: str, answer: str = "done") -> str:
    return await _wait(folder, answer)


@tools.register(repeatable=True)
async def deadly(folder: str) -> str:
    Path(folder, f"began-{os.getpid()}-{time.time_ns()}").touch()
    os.kill(os.getpid(), 9)
'''
WORKER = """
import logging, sys
import anyio
from overspill import Settings
from overspill.task_queue.address import parse_address
from overspill.cli.signals import run_until_signal
from overspill.store.open import open_store
from overspill.worker.serve import ToolWorker, WorkerOptions
from overspill.worker.tools import load_tools

logging.basicConfig()
tools, store, queue, redelivery, grace = sys.argv[1:]
options = WorkerOptions(redelivery_seconds=float(redelivery), grace_seconds=float(grace))
worker = ToolWorker(load_tools(tools), open_store(store), parse_address(queue), Settings(), options)
anyio.run(run_until_signal, lambda stop: worker.serve(stop, lambda: print("ready", flush=True)))
"""


class Workers:
    """A queue, a store and the processes that serve them."""

    def __init__(self, folder: Path, queue: str, store: str) -> None:
        self.folder, self.queue, self.store = folder, queue, store
        self.file = folder / "test_tools.py"
        self.file.write_text(TOOLS)
        self.started: list[subprocess.Popen[str]] = []

    def start(self, redelivery: float = 1.0, grace: float = 30.0, *, lives: bool = True) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, str(self.file), self.store, self.queue, str(redelivery), str(grace)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n" or not lives
        return process

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()

    def session(self, name: str = "team", **more: Any) -> Session:
        settings = Settings(**{"asyncTimeoutSecs": 20, **more})
        return Session(settings, name=name, shared=True, store=open_store(self.store), jobs=self.queue)

    def make_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder


def count(folder: Path, what: str) -> int:
    return len(list(folder.glob(f"{what}-*")))


@contextmanager
def running_workers(folder: Path, queue: str, store: str, number: int = 1) -> Iterator[Workers]:
    workers = Workers(folder, queue, store)
    try:
        for _ in range(number):
            workers.start()
        yield workers
    finally:
        workers.end()
