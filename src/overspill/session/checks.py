"""Check what a program passes to a session, so that a mistake is a clear error and not a failure further down."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from overspill.budget import ContextBudget
from overspill.calls.service import Errors
from overspill.errors import BadRequest, describe_type, require
from overspill.extraction import Mode
from overspill.record.observers import Observer
from overspill.retrieval.definitions import Format
from overspill.retrieval.group import JOBS
from overspill.settings import Settings
from overspill.settings.opening import open_configured_store
from overspill.store.open import open_store
from overspill.store.protocols import Store
from overspill.task_queue.address import QueueAddress, parse_address
from overspill.types import ToolCall

_NONE = type(None)
_MODES: tuple[object, ...] = get_args(Mode)
_ERRORS: tuple[object, ...] = get_args(Errors)
_FORMATS: tuple[object, ...] = get_args(Format)


def check_session(
    settings: object, budget: object, store: object, *, name: object, family: object, models: object, endpoints: object
) -> None:
    require("settings", settings, (Settings, _NONE), "Settings(…)")
    require("budget", budget, (ContextBudget, _NONE), "ContextBudget(window=…)")
    if not isinstance(store, str | None) and not all(callable(getattr(store, each, None)) for each in ("open_shelf", "shelves")):
        raise BadRequest(f"store must be a URL, or a store such as open_store(…) makes, not {describe_type(store)}.")
    require("name", name, str, "a string")
    require("family", family, str, "a string")
    require("models", models, (Mapping, _NONE), "a mapping of names to models")
    require("endpoints", endpoints, (Mapping, _NONE), "a mapping of names to endpoints")


def find_family(name: str, family: str, *, shared: bool) -> str:
    """Those who may read each other's outputs. A shared session is a family of its own: each worker has a part of it."""
    if shared and not (name or family):
        raise BadRequest("A shared session needs a name, which its workers open it by: Session(name=…, shared=True).")
    if shared and name and family:
        raise BadRequest("A shared session has a name or a family, not both.")
    if (name or family).endswith(JOBS):
        raise BadRequest(f"{name or family!r} cannot name a session: Overspill itself uses names that end with {JOBS}.")
    return name if shared and name else family


def find_store(store: Store | str | None, settings: Settings) -> Store:
    """The one that the program names, or else the one that the settings name."""
    if isinstance(store, str):
        return open_store(store, run_bytes=settings.max_run_bytes)
    return store or open_configured_store(settings)


def find_queue(jobs: object) -> QueueAddress | None:
    require("jobs", jobs, (str, _NONE), "the URL of a queue")
    return parse_address(jobs) if isinstance(jobs, str) else None


def check_observers(observers: Sequence[Observer]) -> tuple[Observer, ...]:
    for each in _check_list("observers", observers, "functions"):
        if not callable(each):
            raise BadRequest(f"An observer must be a function of a session's id and an event, not {describe_type(each)}.")
    return tuple(observers)


def check_options(errors: object, background: object, check: object) -> None:
    if errors not in _ERRORS:
        raise BadRequest(f"errors is {errors!r}; allowed: 'answer', 'raise'.")
    if background not in (None, True, False, "now"):
        raise BadRequest(f"background is {background!r}; allowed: None, True, False, 'now'.")
    if check is not None:
        _check_function("check", check)


def check_format(format: object) -> None:
    if format not in _FORMATS:
        raise BadRequest(f"format is {format!r}; allowed: {', '.join(map(repr, _FORMATS))}.")


def check_turn(calls: object, model: object, messages: object, **functions: object) -> None:
    """`functions` may be None."""
    for call in _check_list("calls", calls, "ToolCall(id, name, args)"):
        require("a call of the turn", call, ToolCall, "ToolCall(id, name, args)")
    require("model", model, (str, _NONE), "the name of a model")
    _check_list("messages", messages, "messages")
    for name, given in functions.items():
        _check_function(name, given)


def _check_function(name: str, given: object) -> None:
    if given is not None and not callable(given):
        raise BadRequest(f"{name} must be a function, not {describe_type(given)}.")


def check_extraction(query: object, mode: object, max_tokens: Any, models: object, progress: object) -> None:
    require("query", query, str, "a string")
    if mode not in _MODES:
        raise BadRequest(f"mode is {mode!r}; allowed: {', '.join(map(repr, _MODES))}.")
    require("max_tokens", max_tokens, int, "a whole number")
    for model in _check_list("models", models, "names"):
        require("a model", model, str, "a name")
    _check_function("progress", progress)
    if max_tokens < 1:
        raise BadRequest(f"max_tokens is {max_tokens}; it must be at least 1.")


def _check_list(name: str, given: object, of: str) -> Sequence[object]:
    require(name, given, Sequence, f"a list of {of}")
    if isinstance(given, str | bytes):
        raise BadRequest(f"{name} must be a list of {of}, not a single string.")
    return cast("Sequence[object]", given)


def find_loop() -> object:
    """What identifies the event loop that runs this code; None outside every loop."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        trio: Any = sys.modules.get("trio")  # a session that runs on it has imported it
    try:
        return None if trio is None else trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def is_closed(loop: object) -> bool:
    return isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed()


def wrong_loop() -> BadRequest:
    return BadRequest(
        "This session belongs to another event loop. Use it only in the loop that opened it, "
        "or use SyncSession, which works from every thread."
    )
