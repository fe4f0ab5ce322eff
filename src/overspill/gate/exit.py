"""Let threads finish before the program ends. Python stops those that are left, and one that is inside C++ code aborts the process."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition

_changed = Condition()
_busy: set[object] = set()


@contextmanager
def finish_before_exit() -> Iterator[None]:
    _wait_at_exit()
    mark = object()
    with _changed:
        _busy.add(mark)
    try:
        yield
    finally:
        with _changed:
            _busy.remove(mark)
            _changed.notify_all()


@cache
def _wait_at_exit() -> None:
    atexit.register(_wait)


def _wait() -> None:
    with _changed:
        _changed.wait_for(lambda: not _busy)
