"""What Overspill logs, shown while a command runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from overspill.cli.stderr import warn

_LOGGER = logging.getLogger("overspill")  # by name: importing the room that logs would delay a proxy's servers


@contextmanager
def show_log(
    write: Callable[[str], None] = warn, wanted: Callable[[logging.LogRecord], bool] = lambda _: True
) -> Generator[None]:
    """Show what Overspill logs as a warning while a command runs."""
    handler = _LogLines(write)
    handler.addFilter(wanted)
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)


class _LogLines(logging.Handler):
    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # standard error may be closed by now; the tool keeps running
            self._write(record.getMessage())
