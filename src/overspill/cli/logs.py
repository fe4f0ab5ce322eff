"""What Overspill logs while a command runs, on a standard error that may have no reader; and traces of its calls."""

from __future__ import annotations

import io
import logging
import os
import select
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from overspill.cli.terminal import Level, inform, is_verbose

if TYPE_CHECKING:
    from overspill.record.logs import Observer

_LOGGER = logging.getLogger("overspill")  # by name: importing the package that logs would delay a proxy's servers
_MAX_WAITING_BYTES = 1024 * 1024
_BLOCK_BYTES = 64 * 1024
_FLUSH_SECONDS = 1.0  # to wait for a slow reader when the server ends
_LEFT_OUT = "overspill: {count:,} bytes of messages are left out here, because nothing read them in time.\n"


def find_observers() -> tuple[Observer, ...]:
    """Return OpenTelemetry if its SDK was loaded before us, as by `opentelemetry-instrument overspill proxy …`; else nothing."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return ()
    from overspill.record.otel import OpenTelemetry

    return (OpenTelemetry(),)


@contextmanager
def show_log(
    write: Callable[[str, Level], None] = inform, wanted: Callable[[logging.LogRecord], bool] = lambda _: True
) -> Generator[None]:
    """Show warnings and which outputs were stored while a command runs, and everything with --verbose."""
    handler = _LogLines(write)
    handler.addFilter(wanted)
    usual = _LOGGER.level
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(usual)


class _LogLines(logging.Handler):
    def __init__(self, write: Callable[[str, Level], None]) -> None:
        super().__init__(logging.INFO)
        self._write = write
        self._is_verbose = is_verbose()

    def emit(self, record: logging.LogRecord) -> None:
        is_warning = record.levelno >= logging.WARNING
        is_stored = getattr(record, "tool_output", False) and getattr(record, "reason", "") != "requested"
        if is_warning or is_stored or self._is_verbose:
            with suppress(OSError, ValueError):  # standard error may be closed by now; the tool keeps running
                self._write(record.getMessage(), "warning" if is_warning else "note")


@contextmanager
def unread_stderr_allowed() -> Generator[None]:
    """Inside, writes to `sys.stderr` never block, so a server keeps running even if its parent process does not read them."""
    usual: TextIO | None = sys.stderr
    try:
        number = usual.fileno() if usual is not None else -1
    except (OSError, ValueError):  # a stream without a descriptor does not wait for anyone
        number = -1
    if usual is None or number < 0:
        yield
        return
    usual.flush()
    relay = _Relay(number)
    # Without a buffer, so that a line is complete when it is relayed, and nothing stays unwritten.
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(relay, 1), encoding=usual.encoding, errors=usual.errors or "backslashreplace", write_through=True
    )
    try:
        yield
    finally:
        sys.stderr = usual
        relay.wait_until_written(_FLUSH_SECONDS)


class _Relay(io.RawIOBase):
    """Takes bytes without waiting, and writes them in a thread. Drops and counts what is not read in time."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._changed = threading.Condition()
        self._waiting = bytearray()
        self._left_out = 0
        # A daemon: it may be writing to a full pipe when the server ends.
        threading.Thread(target=self._write_all, name="overspill standard error", daemon=True).start()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._target

    def isatty(self) -> bool:
        return os.isatty(self._target)

    def write(self, data: object, /) -> int:
        piece = bytes(memoryview(data))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with self._changed:
            if len(self._waiting) + len(piece) > _MAX_WAITING_BYTES:
                self._left_out += len(piece)
            else:
                self._waiting += piece
                self._changed.notify_all()
        return len(piece)

    def wait_until_written(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, seconds)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                piece = bytes(self._waiting[:_BLOCK_BYTES])
            written = len(piece)
            with suppress(OSError):  # the reader is gone and needs nothing more
                try:
                    written = os.write(self._target, piece)
                except BlockingIOError:  # another process that has it open may have made it non-blocking
                    written = 0
                    select.select((), (self._target,), ())
            with self._changed:
                del self._waiting[:written]
                if self._left_out and not self._waiting:
                    count, self._left_out = self._left_out, 0
                    self._waiting += _LEFT_OUT.format(count=count).encode()
                self._changed.notify_all()
