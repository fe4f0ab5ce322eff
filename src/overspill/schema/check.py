"""Pass a schema and a value to the worker process, and read its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overspill.confined.worker import Worker
from overspill.text.humanize import one_line
from overspill.text.lenient_json import ready

MAX_WORKERS = 4
"""Workers for the schemas of one server. Other servers' schemas do not wait for them."""
_worker = Worker(Path(__file__).with_name("worker.py"), max_running=4 * MAX_WORKERS, max_seconds=15.0, max_each=MAX_WORKERS)


class Misfit(Struct, frozen=True):
    """Where a value does not fit, the keyword it breaks, as JSON, and the library's message, which may quote the value."""

    path: str
    rule: str
    message: str


class Unchecked(Exception):
    """The schema is broken, refers to something outside itself, or takes too long. This says nothing about the value."""


class _Answer(Struct, frozen=True):
    misfit: Misfit | None = None
    flaw: str = ""
    unchecked: str = ""


def find_misfit(schema: Any, value: Any, server: str = "") -> Misfit | None:
    """Where a value does not fit; None if it fits. Blocks. `server`: the schema's owner. Raises Unchecked without an answer."""
    return _ask({"schema": schema, "value": value}, server).misfit


def fits_schema(schema: Any, server: str = "") -> Callable[[Mapping[str, Any]], str | None]:
    """Make a check that says in a sentence what is wrong with arguments. An unusable schema passes: the server will check."""

    def check(args: Mapping[str, Any]) -> str | None:
        try:
            found = find_misfit(schema, args, server)
        except Unchecked:
            return None
        # Quote the rule, not the value, which is stored content and may be large.
        return None if found is None else f"{one_line(found.path)} breaks the rule {one_line(found.rule)}."

    return check


def find_flaw(schema: Any) -> str:
    """Why a schema cannot be used, as the end of a sentence about it; empty if it can. Blocks."""
    return _ask({"schema": schema}).flaw


def _ask(request: dict[str, Any], server: str = "") -> _Answer:
    if not Worker.can_run():
        raise Unchecked("there is no Python to check it with")
    try:
        work = json.dumps(request).encode()
        done = _worker.run(work, owner=server or "ours")
        if not done.is_complete and not server:  # try again: a machine that paused uses up the time of a small schema too
            done = _worker.run(work, owner="ours")
        if not done.is_complete:  # the worker was ended by a limit
            raise Unchecked("it is too large or takes too long")
        answer = msgspec.convert(json.loads(done.output), ready(_Answer))
    except RecursionError:
        raise Unchecked("it is nested too deeply") from None
    except (OSError, ValueError, TypeError):  # the worker did not start, or the value is not JSON
        raise Unchecked("it is too large or takes too long") from None
    if answer.unchecked:
        raise Unchecked(answer.unchecked)
    return answer
