"""Pass a schema and a value to the worker process, and read its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import msgspec
from msgspec import Struct

_WORKER = str(Path(__file__).with_name("worker.py"))
_MAX_SECONDS = 15.0
"""Until the worker is killed. It ends sooner by itself, when it has used its processor time."""
MAX_WORKERS = 4
_workers = BoundedSemaphore(MAX_WORKERS)


class Misfit(Struct, frozen=True):
    """Where a value does not fit, which keyword it breaks, as JSON, and what the library says, which may quote the value."""

    path: str
    rule: str
    message: str


class Unchecked(Exception):
    """The schema is broken, refers to something outside itself, or takes too long. This says nothing about the value."""


class _Answer(Struct, frozen=True):
    misfit: Misfit | None = None
    flaw: str = ""
    unchecked: str = ""


def find_misfit(schema: Any, value: Any) -> Misfit | None:
    """Blocks. Raises Unchecked if there is no answer."""
    return _ask({"schema": schema, "value": value}).misfit


def find_flaw(schema: Any) -> str:
    """Why a schema cannot be used, as the end of a sentence about it; empty if it can. Blocks."""
    return _ask({"schema": schema}).flaw


def _ask(request: dict[str, Any]) -> _Answer:
    if not sys.executable or getattr(sys, "frozen", False):
        raise Unchecked("there is no Python to check it with")
    # -I and -S: nothing of the environment or the working directory decides what the worker imports, only our own path does.
    command = [sys.executable, "-I", "-S", _WORKER, *filter(None, sys.path)]
    try:
        data = json.dumps(request).encode()
        with _workers:
            done = subprocess.run(command, input=data, capture_output=True, env={}, timeout=_MAX_SECONDS, check=True)  # noqa: S603
        answer = msgspec.convert(json.loads(done.stdout), _Answer)
    except RecursionError:
        raise Unchecked("it is nested too deeply") from None
    except (subprocess.SubprocessError, OSError, ValueError, TypeError):  # ended by a limit, not started, or not JSON
        raise Unchecked("it is too large or takes too long") from None
    if answer.unchecked:
        raise Unchecked(answer.unchecked)
    return answer
