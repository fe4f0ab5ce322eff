"""Hands a schema and a value to the worker, and understands its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

_WORKER = str(Path(__file__).with_name("worker.py"))
_PATIENCE = 15.0
"""Seconds until the worker is ended from outside. It ends itself sooner, by the processor time that it may use."""


class Misfit(Struct, frozen=True):
    """Where a value does not fit, which keyword it breaks, as JSON, and what the library says, which may quote the value."""

    path: str
    rule: str
    message: str


class Unchecked(Exception):
    """Nobody can say: the schema is broken, refers to what is not in it, or takes too long. Says nothing about the value."""


class _Answer(Struct, frozen=True):
    misfit: Misfit | None = None
    flaw: str = ""
    unchecked: str = ""


def find_misfit(schema: Any, value: Any) -> Misfit | None:
    """Blocks; Unchecked where it cannot be said."""
    return _ask({"schema": schema, "value": value}).misfit


def find_flaw(schema: Any) -> str:
    """What keeps a schema from being used, as the end of a sentence about it; nothing if it can be. Blocks."""
    return _ask({"schema": schema}).flaw


def _ask(request: dict[str, Any]) -> _Answer:
    if not sys.executable or getattr(sys, "frozen", False):
        raise Unchecked("there is no Python to check it with")
    # -I and -S: nothing of the environment or the working directory decides what the worker imports, only our own path does.
    command = [sys.executable, "-I", "-S", _WORKER, *filter(None, sys.path)]
    try:
        data = json.dumps(request).encode()
        done = subprocess.run(command, input=data, capture_output=True, env={}, timeout=_PATIENCE, check=True)  # noqa: S603
        answer = msgspec.convert(json.loads(done.stdout), _Answer)
    except RecursionError:
        raise Unchecked("it is nested too deeply") from None
    except (subprocess.SubprocessError, OSError, ValueError, TypeError):  # ended by a limit, not started, or not JSON
        raise Unchecked("it is too large or takes too long") from None
    if answer.unchecked:
        raise Unchecked(answer.unchecked)
    return answer
