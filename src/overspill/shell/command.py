"""A command whose standard output is read as it comes. Signals that reach us reach it too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, suppress
from types import FrameType

import anyio
from anyio.abc import ByteReceiveStream, Process

from overspill.errors import OverspillError
from overspill.shell.waking import wake_on_signals

MAX_BLOCK_BYTES = 1 << 18
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_SENT_BY_TERMINALS = (signal.SIGINT, signal.SIGQUIT)


class CommandNotStarted(OverspillError):
    """`exit_code` is what a shell returns for it: 127 if there is no such command, 126 if it cannot be run."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


async def start(command: Sequence[str], *, stdin: int | None, stderr: int | None) -> Process:
    """None: the command has ours. Raises CommandNotStarted."""
    try:
        return await anyio.open_process(list(command), stdin=stdin, stdout=subprocess.PIPE, stderr=stderr)
    except FileNotFoundError as error:
        if error.filename not in (None, command[0]):  # the working directory is gone
            raise
        raise CommandNotStarted(f"{command[0]}: command not found.", 127) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "an argument contains a NUL character"
        raise CommandNotStarted(f"{command[0]} could not be started: {why}.", 126) from None


async def read_blocks(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    with suppress(anyio.EndOfStream):
        while True:
            yield await stream.receive(MAX_BLOCK_BYTES)


class SignalForwarder:
    """While it is entered, signals that should end us go to a process instead. It decides what to do, and we end when it ends.

    Enter it before the process starts, so that no signal is missed. Those that were blocked until now come now.
    """

    def __init__(self) -> None:
        self._pid: int | None = None
        self._waiting: list[int] = []
        self._undoing = ExitStack()

    def forward_to(self, pid: int) -> None:
        self._pid = pid
        while self._waiting:
            self._send(pid, self._waiting.pop(0))

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
        if self._pid is None:
            self._waiting.append(number)
        elif number not in _SENT_BY_TERMINALS or not _is_in_foreground():  # a terminal sends it to both
            self._send(self._pid, number)

    def _send(self, pid: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
