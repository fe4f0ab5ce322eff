"""A command whose output is read as it arrives. Signals that reach us reach all of its processes, and none outlives us."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import struct
import subprocess
import termios
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import FrameType

import anyio
import anyio.to_thread

from overspill.errors import OverspillError

MAX_BLOCK_BYTES = 1 << 18
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_SENT_BY_TERMINALS = (signal.SIGINT, signal.SIGQUIT)
_GUARD = """
end() { kill -s STOP "$1"; for child in $(cat /proc/"$1"/task/*/children); do end "$child"; done; kill -s KILL "$1"; }
read pid && ! read ended && { end "$pid"; kill -s KILL -- "-$pid"; }
"""
"""A script that reads the id of a process, and ends it with all that it started unless another line follows."""


class CommandNotStarted(OverspillError):
    """The command did not start. `exit_code` is as in a shell: 127 if the command was not found, 126 if it cannot be run."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class OutputPipe:
    """Receives what a command prints. Processes that the command leaves running may keep it open for as long as they want."""

    def __init__(self, ends: ExitStack, entrances: ExitStack) -> None:
        self._end, self.entrance = os.pipe()
        os.set_blocking(self._end, False)
        ends.callback(os.close, self._end)
        entrances.callback(os.close, self.entrance)
        self._has_ended = False
        self._waiting = anyio.CancelScope()

    def note_end(self) -> None:
        """Note that the command has ended: everything that it printed is in the pipe or was read."""
        self._has_ended = True
        self._waiting.cancel()

    async def read(self) -> AsyncIterator[bytes]:
        left: int | None = None
        while True:
            if self._has_ended and left is None:
                left = struct.unpack("i", fcntl.ioctl(self._end, termios.FIONREAD, bytes(4)))[0]
            try:
                block = os.read(self._end, MAX_BLOCK_BYTES if left is None else min(left, MAX_BLOCK_BYTES))
            except BlockingIOError:
                with anyio.CancelScope() as self._waiting:
                    if not self._has_ended:
                        await anyio.wait_readable(self._end)
                continue
            if not block:
                return
            left = None if left is None else left - len(block)
            yield block


class RunningCommand:
    def __init__(
        self, process: subprocess.Popen[bytes], stdout: OutputPipe, stderr: OutputPipe | None, *, is_apart: bool
    ) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self._process = process
        self._is_apart = is_apart
        self._ended = anyio.Event()

    @property
    def exit_code(self) -> int:
        """The command's exit code, or minus the signal that ended it; 0 while it runs."""
        return self._process.returncode or 0

    async def wait(self) -> None:
        await self._ended.wait()

    def note_end(self) -> None:
        self._ended.set()
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.note_end()

    def send(self, number: int) -> None:
        """Send a signal to all of its processes. On a terminal, it is in our process group, which may include others."""
        if self._ended.is_set():  # another process may have its id by now
            return
        if self._is_apart:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            return
        for pid in (self._process.pid, *_find_descendants(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@asynccontextmanager
async def run_command(command: Sequence[str], *, stdin: int | None, reads_stderr: bool) -> AsyncGenerator[RunningCommand]:
    """Run a command until it ends, and forward signals to it. If `stdin` is None, it inherits ours. Raises CommandNotStarted."""
    is_apart = not (os.isatty(0) or os.isatty(2))  # a command in a separate session could not read from our terminal
    failure: Exception | None = None
    with SignalForwarder() as signals, _guard_command() as guard, ExitStack() as pipes:
        with ExitStack() as entrances, _explain_failure(command[0]):  # closes our copies: the command has its own
            stdout, stderr = OutputPipe(pipes, entrances), OutputPipe(pipes, entrances) if reads_stderr else None
            process = subprocess.Popen(  # noqa: S603, ASYNC220
                command,
                stdin=stdin,
                stdout=stdout.entrance,
                stderr=stderr and stderr.entrance,
                start_new_session=is_apart,
                # Called in the new process before it becomes the command, which therefore never runs without a guard.
                preexec_fn=lambda: guard(b"%d\n" % os.getpid()),
            )
        running = RunningCommand(process, stdout, stderr, is_apart=is_apart)
        signals.forward_to(running.send, shares_terminal=not is_apart)

        async def wait() -> None:
            try:
                await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
            finally:
                if process.returncode is None:  # we were cancelled
                    process.kill()
                    process.wait()
                guard(b"\n")
                running.note_end()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            try:
                yield running
            except Exception as error:  # raised below, because the group would wrap it
                failure = error
            pipes.close()  # if we failed, the command learns that its output has no reader
    if failure is not None:
        raise failure


@contextmanager
def _explain_failure(name: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if error.filename not in (None, name):  # what is missing is the working directory
            raise
        raise CommandNotStarted(f"{name}: command not found.", 127) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "an argument contains a NUL character"
        raise CommandNotStarted(f"{name} could not be started: {why}.", 126) from None


@contextmanager
def _guard_command() -> Generator[Callable[[bytes], None]]:
    """Start a process that ends a command and everything it started, if we are gone before the command. Yields a function that
    writes to it: the id of the command, and an empty line when it has ended, because another process may soon get that id."""
    guard, nothing = None, subprocess.DEVNULL
    with suppress(OSError):  # a system without a shell
        guard = subprocess.Popen(  # noqa: S603  # our own script
            ["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True
        )

    def write(line: bytes) -> None:
        if guard is not None and guard.stdin is not None:
            with suppress(BrokenPipeError):
                os.write(guard.stdin.fileno(), line)

    try:
        yield write
    finally:
        if guard is not None:
            write(b"\n")  # if the command could not be started
            guard.communicate()


class SignalForwarder:
    """While entered, forwards the signals that would end us. The command decides what to do, and we end when it ends.

    Enter it before the process starts, so that no signal is missed. Signals that were blocked until now arrive then.
    """

    def __init__(self) -> None:
        self._send: Callable[[int], None] | None = None
        self._shares_terminal = False
        self._waiting: list[int] = []
        self._undoing = ExitStack()

    def forward_to(self, send: Callable[[int], None], *, shares_terminal: bool = False) -> None:
        self._send, self._shares_terminal = send, shares_terminal
        while self._waiting:
            send(self._waiting.pop(0))

    def __enter__(self) -> SignalForwarder:
        self._undoing.enter_context(wake_on_signals())
        for number in FORWARDED:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._undoing.callback(signal.signal, number, signal.signal(number, self._forward))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        return self

    def __exit__(self, *_: object) -> None:
        self._undoing.close()

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if self._send is None:
            self._waiting.append(number)
        elif not (self._shares_terminal and number in _SENT_BY_TERMINALS and _is_in_foreground()):  # a terminal sends it to both
            self._send(number)


@contextmanager
def wake_on_signals() -> Generator[None]:
    """Inside, every signal wakes the running event loop, so that a handler set with `signal.signal` is called immediately.

    Python calls handlers only in the main thread. If that thread waits for events, and the signal reached another thread or came
    just before the wait began, the handler would run only at the next event, which may be far away.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # no loop, or Trio's, which does it itself
        yield
        return
    woken, waking = socket.socketpair()
    with woken, waking:
        woken.setblocking(False)
        waking.setblocking(False)
        loop.add_reader(woken, woken.recv, 4096)
        before = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(woken)


def _find_descendants(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):  # Linux has it
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *_find_descendants(child)]
    return found


def _is_in_foreground() -> bool:
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
