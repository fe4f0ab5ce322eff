"""The interpreter that programs run in: worker processes without files, network or environment. Only this file imports it.

A program runs until it calls one of our functions. Its process then waits for an answer from here. The answer is text, which the
program parses itself: passing values takes four times as long.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import pydantic_monty as monty
from msgspec import Struct
from pydantic_monty import FunctionSnapshot, FutureSnapshot, MontyComplete, MontyError
from pydantic_monty._binary import find_monty_binary

from overspill.errors import OverspillError, SessionClosed
from overspill.store.files.scratch import ScratchFolder

MAX_MEMORY_BYTES = 768 << 20
MAX_PRINTED_BYTES = 10 << 20
"""The limit on what a program prints, and on the value that it returns. Beyond it, the program fails and says so."""
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
"""Starts a process that cannot write to our standard error or to files, or use up memory, even if the interpreter has a flaw."""
_PRELUDE = """\
import json

def load(name):
    form, text = _load(name)
    return json.loads(text) if form == "json" else text.splitlines()

def parts(name):
    return _parts(name)

def text(name, start=0, end=None):
    return _text(name, start, end)

def sql(statement):
    return json.loads(_sql(statement))

def find(question, name):
    return json.loads(_find(question, name))

def save(label, value):
    return _save(label, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

def tool_stubs(names=()):
    return _tool_stubs([names] if isinstance(names, str) else list(names))

class _Server:
    pass

_waiting = []

def _tool(name):
    def call(*positional, **arguments):
        _waiting.append(name)
        return _use(name, positional, arguments)
    return call

async def _use(tool, positional, arguments):
    if tool in _waiting:
        _waiting.remove(tool)
    if positional:
        raise TypeError(tool + " takes its arguments by name: " + tool + "(id=1)")
    form, text = await _call(tool, json.dumps(arguments))
    return json.loads(text) if form == "json" else text

def _finish(value):
    if _waiting:
        raise TypeError("a 'coroutine' was never awaited, so these tools were not called: " + ", ".join(_waiting[:10]))
    if value is None:
        return ""
    try:
        written = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)
    except (TypeError, ValueError):
        written = repr(value)
    if len(written) > 10_000_000:
        raise MemoryError("memory limit: the value of the last expression has more than 10,000,000 characters")
    return written
"""
"""Runs before every program. Names with an underscore are answered outside the sandbox."""

_finding = Lock()
"""Two threads that ask for the folders of Python for the first time can disturb each other."""
Answer: TypeAlias = Callable[[str, tuple[Any, ...]], Awaitable[Any]]
"""Answers a call of one of our functions by name. What it raises is raised in the program."""


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
        self._in_thread = partial(
            anyio.to_thread.run_sync, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(3 * MAX_PROCESSES)
        )

    async def run(self, code: str, definitions: str, answer: Answer, seconds: float) -> Ending:
        """Run a program for at most `seconds`, including waits for tools. `definitions` are Python code to run before it."""
        printed = monty.CollectString(MAX_PRINTED_BYTES)
        async with self._places:
            with anyio.move_on_after(seconds):
                session: monty.MontySession = await self._in_thread(self._check_out, definitions, seconds)
                process: int | None = session.worker_pid
                try:
                    ending = await _drive(session, code, printed, answer, self._in_thread)
                    process = None
                    return ending
                finally:
                    if process is not None:  # a thread waits for it, and so does the pool: the id is still its own
                        with suppress(ProcessLookupError):
                            os.kill(process, signal.SIGKILL)
                    with anyio.CancelScope(shield=True), suppress(MontyError):
                        await self._in_thread(session.__exit__, None, None, None)
        return Ending(printed.output, is_late=True)

    def _check_out(self, definitions: str, seconds: float) -> monty.MontySession:
        limits: Any = {"max_memory": MAX_MEMORY_BYTES, "max_feed_duration_secs": seconds}
        limits |= {"max_recursion_depth": 500, "max_suspensions": MAX_WAITS}
        session = self._open().checkout(limits=limits, script_name="program.py")
        session.__enter__()
        session.feed_run(_PRELUDE + definitions)
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
        """Write a script that starts the interpreter. If programs there cannot be executed, returns the interpreter."""
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


async def _drive(
    session: monty.MontySession, code: str, printed: monty.CollectString, answer: Answer, in_thread: Callable[..., Any]
) -> Ending:
    """Run a program in its process, and the tools that it calls here."""
    tools, ending = _Tools(answer), Ending("")
    async with anyio.create_task_group() as running:
        try:
            step = await in_thread(partial(session.feed_start, code, print_callback=printed))
            while not isinstance(step, MontyComplete):
                match step:
                    case FunctionSnapshot(function_name="_call"):
                        running.start_soon(tools.settle, step.call_id, step.args)
                        resume = partial(step.resume, {"future": ...})
                    case FunctionSnapshot(is_os_function=False):
                        resume = partial(step.resume, await tools.ask(str(step.function_name), step.args))
                    case FutureSnapshot():
                        resume = partial(step.resume, await tools.wait(step.pending_call_ids))
                    case _:  # functions of the operating system, and names that are not defined
                        resume = step.resume_auto
                step = await in_thread(resume)
            # The program converts its value to text itself, within its limits: a small value may take very many characters.
            value = await in_thread(partial(session.feed_run, "_finish(_value)", inputs={"_value": step.output}))
            ending = Ending(printed.output, value)
        except MontyError as error:
            frames = error.traceback() if isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError) else []
            own = [(0, ""), *((each.line, each.source_line or "") for each in frames if each.filename != "<python-input-0>")]
            cause = f"{'SyntaxError: ' * isinstance(error, monty.MontySyntaxError)}{error}"
            ending = Ending(printed.output, "", cause, *own[-1])
        running.cancel_scope.cancel()  # tools whose results the program does not wait for
    return ending


class _Tools:
    """The calls of one program, and their results until the program takes them."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._settled: dict[int, monty.ExternalSettledResult] = {}
        self._news = anyio.Event()

    async def settle(self, id: int, args: tuple[Any, ...]) -> None:
        self._settled[id] = await self.ask("_call", args)
        self._news.set()

    async def wait(self, ids: Iterable[int]) -> dict[int, monty.ExternalSettledResult]:
        while not (ready := {id: self._settled.pop(id) for id in ids if id in self._settled}):
            self._news = anyio.Event()
            await self._news.wait()
        return ready

    async def ask(self, name: str, args: tuple[Any, ...]) -> monty.ExternalSettledResult:
        try:
            return {"return_value": await self._answer(name, args)}
        except LookupError:
            return {"exc_type": "NameError", "message": f"name {name!r} is not defined"}
        except OverspillError as error:
            return {"exc_type": "RuntimeError" if name == "_call" else "ValueError", "message": str(error)}
