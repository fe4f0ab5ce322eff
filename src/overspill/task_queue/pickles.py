"""Keeps pydocket from running what a message tells it to run, and from ending over a message that it cannot read.

pydocket pickles arguments, and unpickling a hostile message executes code, or takes as much memory as the message says.
Overspill's messages hold one string. For Overspill's own queues, and for nothing else in the process, this reads single values
and refuses everything else.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from typing import Any

from docket import execution, strikelist

from overspill import handles
from overspill.errors import MissingPackage

_is_guarded: ContextVar[bool] = ContextVar("overspill_guarded", default=False)
_MAX_BYTES = 1024 * 1024  # of a message; arguments have 16 KiB
_MAX_STEPS = 16  # of a pickle; a string in a tuple takes seven
_MAX_NUMBER = 2**31
_PLAIN_STEPS = re.compile(
    "PROTO|FRAME|STOP|MEMOIZE|(SHORT_)?BINUNICODE|TUPLE1|EMPTY_(TUPLE|DICT)|NONE|NEW(TRUE|FALSE)|BININT[12]?|BINFLOAT"
)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not plain data")


class _GuardedPickle:
    def __init__(self, original: Any) -> None:
        self._original = original

    def loads(self, data: bytes) -> Any:
        if not _is_guarded.get():
            return self._original.loads(data)
        for number, (step, _, _) in enumerate(pickletools.genops(data)):
            if number == _MAX_STEPS or not _PLAIN_STEPS.fullmatch(step.name):
                raise pickle.UnpicklingError("more than a single value")
        return _PlainUnpickler(io.BytesIO(data)).load()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


@cache
def _install() -> None:
    for module in (execution, strikelist):
        original: Any = getattr(module, "cloudpickle", None)
        if original is None:
            raise MissingPackage("Running tools on workers safely", "docket")
        module.cloudpickle = _GuardedPickle(original)  # pyright: ignore[reportAttributeAccessIssue]
    calls: Any = execution.Execution
    strikes: Any = strikelist.StrikeInstruction
    read_call, read_strike = calls.from_message, strikes.from_message

    async def read_any_call(docket: Any, message: dict[bytes, bytes], **more: Any) -> Any:
        if not _is_guarded.get():
            return await read_call(docket, message, **more)
        try:
            _check_size(message)
            return _check_types(await read_call(docket, message, **more))
        except Exception:  # hostile data fails in every way. The worker takes this call out of the queue like any other
            id, refuse = more["message_id"], more["fallback_task"]
            return calls(docket, refuse, (), {}, handles.new(), datetime.now(UTC), 1, message_id=id)

    def read_any_strike(message: dict[bytes, bytes]) -> Any:
        if not _is_guarded.get():
            return read_strike(message)
        try:
            _check_size(message)
            return read_strike(message)
        except Exception:  # a worker reads all strikes before it begins
            return strikelist.Restore(None, None, strikelist.Operator.EQUAL, None)  # which does nothing

    calls.from_message, strikes.from_message = read_any_call, read_any_strike


def _check_size(message: dict[bytes, bytes]) -> None:
    if sum(map(len, message.values())) > _MAX_BYTES:
        raise ValueError("too large")


def _check_types(call: Any) -> Any:
    is_call = type(call.args) is tuple and type(call.kwargs) is dict and call.when.tzinfo is not None
    if not is_call or not (0 <= call.attempt < _MAX_NUMBER and 0 <= call.generation < _MAX_NUMBER):
        raise TypeError("not a call")
    return call


@contextmanager
def guard_unpickling() -> Generator[None]:
    """What is done inside, and in tasks that are started inside, unpickles only plain data."""
    _install()
    before = _is_guarded.set(True)
    try:
        yield
    finally:
        _is_guarded.reset(before)
