"""Keeps pydocket from running what a message tells it to run.

pydocket pickles arguments, and unpickling a hostile message executes code. Overspill's messages hold one string. For Overspill's
own queues, and for nothing else in the process, this reads strings, numbers and containers, and refuses everything else.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from docket import execution, strikelist

from overspill.errors import MissingPackage

_is_guarded: ContextVar[bool] = ContextVar("overspill_guarded", default=False)


class RefusedData(dict[Any, Any]):
    """Stands for positional or named arguments that were refused. There are none in it, so the call fails for want of them."""

    def __getitem__(self, key: Any) -> Any:
        return () if isinstance(key, slice) else super().__getitem__(key)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not plain data")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("a reference is not plain data")


class _GuardedPickle:
    def __init__(self, original: Any) -> None:
        self._original = original

    def loads(self, data: bytes) -> Any:
        if not _is_guarded.get():
            return self._original.loads(data)
        try:
            return _PlainUnpickler(io.BytesIO(data)).load()
        except Exception:  # hostile data fails in every way, and a worker must outlive it
            return RefusedData()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def _install() -> None:
    for module in (execution, strikelist):
        original: Any = getattr(module, "cloudpickle", None)
        if original is None:
            raise MissingPackage("Running tools on workers safely", "docket")
        if not isinstance(original, _GuardedPickle):
            module.cloudpickle = _GuardedPickle(original)  # pyright: ignore[reportAttributeAccessIssue]


@contextmanager
def guard_unpickling() -> Generator[None]:
    """What is done inside, and in tasks that are started inside, unpickles only plain data."""
    _install()
    before = _is_guarded.set(True)
    try:
        yield
    finally:
        _is_guarded.reset(before)
