"""What is logged as a warning while a command runs, as lines that whoever called it can read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import click

from overspill.record.ledger import logger
from overspill.text.humanize import visible


def to_standard_error(line: str) -> None:
    click.echo(visible(line), err=True)


@contextmanager
def show_log(
    say: Callable[[str], None] = to_standard_error, wanted: Callable[[logging.LogRecord], bool] = lambda _: True
) -> Generator[None]:
    lines = _Lines(say)
    lines.addFilter(wanted)
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)


class _Lines(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # nobody reads standard error any more; the tool goes on
            self._say(f"[WRN] {record.getMessage()}")
