"""The interpreter that programs run in: worker processes without files, network or environment. Only this file imports it.

A program runs until it calls one of our functions; then its process waits, and the function is answered here. What it gets is
text, and it parses that itself: values take four times as long to pass.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.abc
import anyio.to_thread
import pydantic_monty as monty
from msgspec import Struct
from pydantic_monty import FunctionSnapshot, FutureSnapshot, MontyComplete, MontyError, NameLookupSnapshot
from pydantic_monty._binary import find_monty_binary

from overspill.errors import OverspillError, SessionClosed
from overspill.programs.prelude import PRELUDE
from overspill.store.files.scratch import ScratchFolder

MAX_MEMORY_BYTES = 768 << 20
MAX_PRINTED_BYTES = 10 << 20
"""Of what a program prints, and of the value that it returns. Beyond it, the program fails and says so."""
MAX_WAITS = 5_000
"""How often a program may call our functions and tools."""
MAX_PROCESSES = 2
_OVERHEAD_BYTES = 1 << 30  # of address space: the interpreter itself, and text on its way
_LAUNCHER = """\
#!/bin/sh
ulimit -c 0
ulimit -f 0
ulimit -v {kilobytes} 2>/dev/null
exec {binary} "$@" 2>/dev/null
"""
"""Its processes write to our standard error, and could write files and take memory if the interpreter had a fault."""

_finding = Lock()
"""Two threads that ask for the folders of Python for the first time can disturb each other."""
T = TypeVar("T")
Answer: TypeAlias = Callable[[str, tuple[Any, ...]], Awaitable[Any]]
"""Answers a call of one of our functions by name. What it raises is raised in the program."""
InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
Snapshot: TypeAlias = FunctionSnapshot | NameLookupSnapshot | FutureSnapshot | MontyComplete


class Ending(Struct, frozen=True):
    """How a program ended. `cause` is empty if it ran to its end."""

    printed: str
    value: str = ""
    cause: str = ""
    line: int = 0
    source: str = ""
    is_late: bool = False


class Sandbox:
    """A pool of processes, each for one program. They start when they are needed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: monty.Monty | None = None
        self._folder: ScratchFolder | None = None
        self._is_closed = False
        self._places = anyio.Semaphore(MAX_PROCESSES)
        self._threads = anyio.CapacityLimiter(3 * MAX_PROCESSES)

    async def run(self, code: str, definitions: str, answer: Answer, seconds: float) -> Ending:
        """Run a program for at most so long, waiting for tools included. `definitions` are Python too, and run before it."""
        async with self._places:
            printed = monty.CollectString(MAX_PRINTED_BYTES)
            with anyio.move_on_after(seconds) as limit:
                return await self._run(code, definitions, answer, seconds, printed)
            assert limit.cancelled_caught
            return Ending(printed.output, is_late=True, cause="late")

    async def _run(self, code: str, definitions: str, answer: Answer, seconds: float, printed: monty.CollectString) -> Ending:
        session = await self._in_thread(partial(self._check_out, definitions, seconds))
        process, is_waiting = session.worker_pid, True
        try:
            ending = await _Run(session, answer, self._in_thread).drive(code, printed)
            is_waiting = False
            return ending
        finally:
            with anyio.CancelScope(shield=True):
                if is_waiting and process is not None:  # a thread waits for it, and so does the pool: the id is still its own
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                await self._in_thread(partial(_leave, session))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    def _check_out(self, definitions: str, seconds: float) -> monty.MontySession:
        limits: Any = {
            "max_memory": MAX_MEMORY_BYTES,
            "max_feed_duration_secs": seconds,
            "max_recursion_depth": 500,
            "max_suspensions": MAX_WAITS,
        }
        session = self._open().checkout(limits=limits, script_name="program.py")
        session.__enter__()
        session.feed_run(PRELUDE + definitions)
        return session

    def _open(self) -> monty.Monty:
        with self._lock:
            if self._is_closed:
                raise SessionClosed("The session is closed, and with it the processes that run programs.")
            if self._pool is None:
                most, launcher = MAX_PROCESSES + 1, self._write_launcher()
                pool = monty.Monty(binary_path=launcher, min_processes=0, max_processes=most, max_checkouts_per_worker=1)
                self._pool = pool.__enter__()
            return self._pool

    def _write_launcher(self) -> str:
        """The interpreter itself where programs in temporary folders cannot be executed."""
        with _finding:
            binary = find_monty_binary()
        self._folder = ScratchFolder("overspill-programs-")
        launcher = self._folder.path / "monty"
        kilobytes = (MAX_MEMORY_BYTES + _OVERHEAD_BYTES) >> 10
        launcher.write_text(_LAUNCHER.format(binary=shlex.quote(binary), kilobytes=kilobytes))
        launcher.chmod(0o700)
        return str(launcher) if os.access(launcher, os.X_OK) else binary

    def close(self) -> None:
        with self._lock:
            self._is_closed, pool, folder = True, self._pool, self._folder
            self._pool = self._folder = None
        if pool is not None:
            pool.__exit__(None, None, None)
        if folder is not None:
            folder.remove()


class _Run:
    """One program in its process, and the tools that it waits for."""

    def __init__(
        self, session: monty.MontySession, answer: Answer, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        self._session, self._answer, self._in_thread = session, answer, in_thread
        self._settled: dict[int, monty.ExternalSettledResult] = {}
        self._news = anyio.Event()

    async def drive(self, code: str, printed: monty.CollectString) -> Ending:
        ending = Ending(printed="")
        async with anyio.create_task_group() as tools:
            try:
                step: Snapshot = await self._in_thread(partial(self._session.feed_start, code, print_callback=printed))
                while not isinstance(step, MontyComplete):
                    step = await self._in_thread(await self._continue(step, tools))
                value = await self._in_thread(partial(self._write, step))
                ending = Ending(printed.output, value)
            except MontyError as error:
                ending = _describe(error, printed.output)
            tools.cancel_scope.cancel()  # those whose results the program does not wait for
        return ending

    async def _continue(self, step: Snapshot, tools: anyio.abc.TaskGroup) -> Callable[[], Snapshot]:
        """What makes the program continue, to be called in a thread."""
        match step:
            case FunctionSnapshot(is_os_function=True):
                return step.resume_auto
            case FunctionSnapshot(function_name="_call"):
                tools.start_soon(self._settle, step.call_id, step.function_name, step.args)
                return partial(step.resume, {"future": ...})
            case FunctionSnapshot():
                return partial(step.resume, await self._ask(str(step.function_name), step.args))
            case FutureSnapshot():
                while not (ready := {id: self._settled.pop(id) for id in step.pending_call_ids if id in self._settled}):
                    self._news = anyio.Event()
                    await self._news.wait()
                return partial(step.resume, ready)
            case NameLookupSnapshot():
                return step.resume
            case _:
                raise AssertionError(step)

    async def _settle(self, id: int, name: str, args: tuple[Any, ...]) -> None:
        self._settled[id] = await self._ask(name, args)
        self._news.set()

    async def _ask(self, name: str, args: tuple[Any, ...]) -> monty.ExternalSettledResult:
        try:
            return {"return_value": await self._answer(name, args)}
        except LookupError:
            return {"exc_type": "NameError", "message": f"name {name!r} is not defined"}
        except OverspillError as error:
            return {"exc_type": "RuntimeError" if name == "_call" else "ValueError", "message": str(error)}

    def _write(self, done: MontyComplete) -> str:
        """The program writes its value itself, within its own limits: a small one may be written in very many characters."""
        value = done.output
        return "" if value is None else str(self._session.feed_run("_write(_value)", inputs={"_value": value}))


def _describe(error: MontyError, printed: str) -> Ending:
    frames = error.traceback() if isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError) else []
    own = [frame for frame in frames if frame.filename != "<python-input-0>"]
    cause = f"{'SyntaxError: ' * isinstance(error, monty.MontySyntaxError)}{error}"
    return Ending(printed, "", cause, own[-1].line if own else 0, (own[-1].source_line or "") if own else "")


def _leave(session: monty.MontySession) -> None:
    with suppress(MontyError):
        session.__exit__(None, None, None)
