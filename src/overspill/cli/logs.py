"""What Overspill logs, shown while a command runs, and traces of the calls in it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from overspill.cli.stderr import Level, inform, is_verbose, warn

if TYPE_CHECKING:
    from overspill.record.observers import Observer

_LOGGER = logging.getLogger("overspill")  # by name: importing the room that logs would delay a proxy's servers


def write(text: str, level: Level) -> None:
    (inform if level == "note" else warn)(text)


def find_observers() -> tuple[Observer, ...]:
    """OpenTelemetry, if its SDK was loaded before us, as by `opentelemetry-instrument overspill proxy …`. Else nothing."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return ()
    from overspill.record.otel import OpenTelemetry

    return (OpenTelemetry(),)


@contextmanager
def show_log(
    write: Callable[[str, Level], None] = write, wanted: Callable[[logging.LogRecord], bool] = lambda _: True
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
