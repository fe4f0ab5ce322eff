"""Checks what a program passes to a session, and sets up the session each time it is opened."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

import anyio
import anyio.to_thread

from overspill import handles
from overspill.budget import ContextBudget
from overspill.errors import BadRequest, SessionClosed, describe_type, require
from overspill.extraction import Mode
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.record.events import ConversationOpened, now_ms
from overspill.record.logs import Observers
from overspill.redaction.policy import Redaction
from overspill.retrieval.definitions import Format, define_offered_tools
from overspill.retrieval.extractor import configured_endpoints
from overspill.retrieval.group import JOBS, SessionGroup
from overspill.session.parts import SessionOpening, SessionParts, hold_shelf
from overspill.settings import Settings
from overspill.settings.opening import open_configured_store
from overspill.store.conversations import conversation_in
from overspill.store.open import open_store
from overspill.store.protocols import Store
from overspill.task_queue.address import parse_address
from overspill.text import tokens
from overspill.text.lenient_json import dumps
from overspill.types import JobInfo, ToolCall
from overspill.wording.shell import COMMAND

_NONE = type(None)
_MODES: tuple[object, ...] = get_args(Mode)
_FORMATS: tuple[object, ...] = get_args(Format)


def _check_observers(observers: object) -> None:
    for each in _check_list("observers", observers, "functions"):
        if not callable(each):
            raise BadRequest(f"An observer must be a function of a session's id and an event, not {describe_type(each)}.")


def _check_store(store: object) -> None:
    is_store = all(callable(getattr(store, each, None)) for each in ("open_shelf", "shelves"))
    if not isinstance(store, str | None) and not is_store:
        raise BadRequest(f"store must be a URL, or a store such as open_store(…) makes, not {describe_type(store)}.")


def _check_mappings(**given: object) -> None:
    for name, mapping in given.items():
        require(name, mapping, (Mapping, _NONE), f"a mapping of names to {name}")


def check_options(errors: object, background: object, check: object) -> None:
    if errors not in ("answer", "raise"):
        raise BadRequest(f"errors is {errors!r}; allowed: 'answer', 'raise'.")
    if background not in (None, True, False, "now"):
        raise BadRequest(f"background is {background!r}; allowed: None, True, False, 'now'.")
    if check is not None:
        _check_function("check", check)


def check_format(format: object) -> None:
    if format not in _FORMATS:
        raise BadRequest(f"format is {format!r}; allowed: {', '.join(map(repr, _FORMATS))}.")


def check_turn(calls: object, model: object, messages: object, **functions: object) -> None:
    """Check the arguments of `Session.turn`."""
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
    """An object that identifies the event loop that runs this code; None outside any loop."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        trio: Any = sys.modules.get("trio")  # a session that runs on trio has imported it
    try:
        return None if trio is None else trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def is_closed(loop: object) -> bool:
    return isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed()


def prepare_opening(
    settings: Settings | None,
    store: Store | str | None,
    *,
    name: str,
    shared: bool,
    family: str,
    jobs: str | None,
    budget: ContextBudget | None,
    models: Mapping[str, Model] | None,
    endpoints: Mapping[str, Endpoint] | None,
    observers: Observers,
    notice: bool,
    preload: bool,
    secrets: Mapping[str, str] | None,
) -> SessionOpening:
    """Build it from what a program passes to a session."""
    require("settings", settings, (Settings, _NONE), "Settings(…)")
    require("budget", budget, (ContextBudget, _NONE), "ContextBudget(window=…)")
    _check_store(store)
    for what, given in (("name", name), ("family", family)):
        require(what, given, str, "a string")
    _check_mappings(models=models, endpoints=endpoints, secrets=secrets)
    require("jobs", jobs, (str, _NONE), "the URL of a queue")
    _check_observers(observers)
    settings = settings or Settings()
    id, is_shared, is_of_many = handles.new(), shared or jobs is not None, bool(name and family)
    name = name or ("" if family or jobs is None else id)
    family = find_family(name, family, shared=is_shared)
    if budget is None:  # a host that counts its window would have no room for these outputs
        settings = draw_untouched(settings, name or id)
    if isinstance(store, str):
        store = open_store(store, run_bytes=settings.max_run_bytes)
    return SessionOpening(
        settings=settings,
        id=id,
        name=f"{family}/{f'{name}.{id}' if is_of_many else id}" if family and (is_shared or not name) else name,
        family=family,
        is_shared=is_shared,
        budget=budget,
        store=store or open_configured_store(settings),
        models=models or {},
        endpoints={**configured_endpoints(settings, {}), **(endpoints or {})},
        observers=tuple(observers),
        notice=notice,
        preload=preload,
        jobs=parse_address(jobs) if jobs is not None else None,
        redaction=Redaction(settings, secrets or {}),
    )


async def open_parts(opening: SessionOpening, id: str) -> SessionParts:
    """Open a session. `id` is used if it has no name."""
    settings, store = opening.settings, opening.store
    async with hold_shelf(store, settings, id, opening.name) as shelf:
        shared = (shelf.session, conversation_in(opening.name)) if opening.is_shared else ()
        group = SessionGroup(store, opening.family, *shared) if opening.family else None
        inherits = group is not None and await anyio.to_thread.run_sync(group.has_outputs)
        parts = SessionParts(opening, shelf, group, inherits=inherits)
        if shelf.session != id:
            await anyio.to_thread.run_sync(parts.remove_unrecorded)
        await parts.calls.jobs.open()
        offered = define_offered_tools(settings, "openai") if COMMAND not in settings.surface else ()
        parts.ledger.record(ConversationOpened(now_ms(), len(dumps(offered)) if offered else 0, settings.off))
        return parts


def draw_untouched(settings: Settings, conversation: str) -> Settings:
    """Leave a share of conversations untouched. The choice is always the same for one conversation, even when opened again."""
    drawn = int.from_bytes(hashlib.sha256(conversation.encode(errors="surrogatepass")).digest()[:8]) % 100
    return settings.untouched() if drawn < settings.holdout_percent else settings


def find_family(name: str, family: str, *, shared: bool) -> str:
    """The family of a session: those sessions read each other's outputs. The workers of a shared session are one without it."""
    if shared and not (name or family):
        raise BadRequest("A shared session needs a name, which its workers open it by: Session(name=…, shared=True).")
    if shared and family and "/" in name:
        raise BadRequest(f"{name!r} cannot name a shared session of a family, because it contains a slash.")
    if (name or family).endswith(JOBS):
        raise BadRequest(f"{name or family!r} cannot name a session: Overspill itself uses names that end with {JOBS}.")
    return family or (name if shared else "")


class SessionLife:
    """Opens the parts of a session and closes them, as often as the program likes, on one event loop at a time."""

    def __init__(self, opening: SessionOpening) -> None:
        self.opening = opening
        self._next_id = opening.id
        self._parts: SessionParts | None = None
        self._loop: object = None
        self._beginning = anyio.Lock()

    @property
    def parts(self) -> SessionParts:
        if self._parts is None:
            raise SessionClosed("The session is not open. Use `async with Session() as session`, or await session.begin() first.")
        return self._parts

    @property
    def parts_here(self) -> SessionParts:
        """The parts of the open session, for work that must run on its own event loop."""
        if self._parts is None or find_loop() is self._loop:
            return self._parts or self.parts
        raise BadRequest(
            "This session belongs to another event loop. Use it only in the loop that opened it, "
            "or use SyncSession, which works from every thread."
        )

    async def begin(self) -> SessionParts:
        if self._parts is not None:
            return self.parts_here
        async with self._beginning:
            if self._parts is None:
                if self.opening.preload:
                    await anyio.to_thread.run_sync(tokens.load, self.opening.settings.model)
                id, self._next_id = self._next_id, handles.new()
                self._parts, self._loop = await open_parts(self.opening, id), find_loop()
            return self._parts

    async def close(self) -> list[JobInfo]:
        if self._parts is None:
            return []
        has_ended = is_closed(self._loop)  # if the loop is closed, its tasks have ended too
        parts = self._parts if has_ended else self.parts_here
        self._parts, self._beginning = None, anyio.Lock()  # for the loop that opens it next
        remove_empty = self.opening.store.remove_shelf if self.opening.family else None
        return [job.info for job in await parts.end(abort=not has_ended, remove_empty=remove_empty)]
