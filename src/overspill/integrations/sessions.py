"""Whose session it is: one for each conversation or run, opened at the first tool call and closed when the run ends."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread

from overspill.calls.invoke import Tool
from overspill.errors import BadRequest, OverspillError, Unwritable
from overspill.gate.collect import text_block
from overspill.gate.intent import Messages
from overspill.integrations.options import Asking, Options
from overspill.integrations.searching import Searches, Searching
from overspill.session.opening import find_loop, is_closed
from overspill.session.session import Session
from overspill.session.sync import SyncSession
from overspill.types import Reply


class _Opened:
    """A session of either kind, and how many runs of its conversation hold it."""

    def __init__(self, lock: Any) -> None:
        self.session: Any = None
        self.holders = 0
        self.lock = lock


class Sessions:
    """The sessions of one adapter, which may serve many users in parallel. It knows a session only while a run holds it.

    The name of a conversation's session is derived from the conversation's id: the next run reads what this one
    stored, in this process or another. Runs without a conversation share nothing.
    """

    def __init__(self, options: Options, *, misfit: type[Exception] = Unwritable) -> None:
        """`misfit`: the exception by which the framework says that arguments do not fit, if it raises any."""
        self.options, self.misfit = options, misfit
        given, settings = options.session, options.session_settings
        known = given if isinstance(given, Session | SyncSession) else Session(options.settings, tool_prefix=options.tool_prefix)
        self.searches = Searches(settings, known.tool_prefix, known.tools(), is_on=options.tool_search)
        self.definitions = self.searches.definitions
        """Our own tools. They are the same for every run, so an adapter can offer them before a run begins."""
        self.asking = Asking(settings, self.searches.own_names)
        self._guard = threading.Lock()
        self._opened: dict[object, _Opened] = {}

    def begin_run(self, conversation: str = "") -> AgentRun:
        return AgentRun(_Hold(self, conversation))

    def hold(self, key: object, lock: Any) -> _Opened:
        with self._guard:
            opened = self._opened.setdefault(key, _Opened(lock))
            opened.holders += 1
            return opened

    def let_go(self, key: object) -> None:
        with self._guard:
            opened = self._opened[key]
            opened.holders -= 1
            if not opened.holders:
                del self._opened[key]


class _Hold:
    """A run's hold on a session. It outlives a run that its framework forgot to end."""

    def __init__(self, sessions: Sessions, conversation: str) -> None:
        self.options, self.asking, self.begin_search = sessions.options, sessions.asking, sessions.searches.begin
        self._sessions, self.misfit = sessions, sessions.misfit
        self._shared = self.options.find_key(conversation)
        self._given = self.options.session
        self._key: object = None
        self._opened: _Opened | None = None
        self._opening = threading.Lock()
        self.loop: object = None
        self.window: int | None = None
        """The size of the model's context window, if the framework knows it before the session opens."""

    def _describe_session(self) -> dict[str, Any]:
        return {
            "settings": self.options.settings,
            "name": self.options.find_name(self._shared),
            "budget": self.options.new_budget(self.window),
            "notice": self.options.notice,
            "tool_prefix": self.options.tool_prefix,
        }

    @property
    def session(self) -> Session | SyncSession | None:
        """The session, if it is open."""
        return self._given if isinstance(self._given, Session | SyncSession) else self._opened and self._opened.session

    async def open(self) -> Session:
        if isinstance(self._given, Session):
            return self._given
        if isinstance(self._given, SyncSession):
            raise BadRequest("This run is async, and `session` is a SyncSession. Give it a Session.")
        if self._opened is not None and self._opened.session is not None:
            return self._opened.session  # the session itself raises if this is not its event loop
        opened = self._hold(find_loop(), anyio.Lock)
        async with opened.lock:
            if opened.session is None:
                session = Session(**self._describe_session())
                await session.begin()
                opened.session = session
            return opened.session

    def open_sync(self) -> SyncSession:
        if isinstance(self._given, SyncSession):
            return self._given
        if isinstance(self._given, Session):
            raise BadRequest("This run is not async, and `session` is a Session. Give it a SyncSession.")
        opened = self._hold(None, threading.Lock)
        with opened.lock:
            if opened.session is None:
                opened.session = SyncSession(**self._describe_session()).__enter__()
            return opened.session

    def _hold(self, loop: object, new_lock: Any) -> _Opened:
        with self._opening:
            if self._opened is None:
                self.loop, self._key = loop, (loop, self._shared or self)
                self._opened = self._sessions.hold(self._key, new_lock())
            return self._opened

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        with anyio.CancelScope(shield=True):
            async with opened.lock:
                with self._letting_go(opened) as session:
                    if session is not None:
                        await session.close()

    def close_sync(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        with opened.lock, self._letting_go(opened) as session:
            if session is not None:
                session.__exit__(None, None, None)

    @contextmanager
    def _letting_go(self, opened: _Opened) -> Generator[Any]:
        """Yield the session to its last holder, which closes it. Hold the lock: two that leave together could both miss that."""
        session = None
        if opened.holders == 1:
            session, opened.session = opened.session, None
        try:
            yield session
        finally:
            self._sessions.let_go(self._key)

    def abandon(self) -> None:
        """Close it from wherever the garbage collector runs, without waiting."""
        if self._opened is None:
            return
        if isinstance(self.loop, asyncio.AbstractEventLoop) and not is_closed(self.loop):
            with suppress(RuntimeError):  # the loop ends just now, and the session's tasks with it
                asyncio.run_coroutine_threadsafe(self.close(), self.loop)
        else:
            work = self.close_sync if self.loop is None else lambda: anyio.run(self.close)
            with suppress(RuntimeError):  # the program is ending, and the next one removes what its sessions leave
                threading.Thread(target=work).start()


class AgentRun:
    """One run of an agent. End it with `close` or `close_sync`; a run that is dropped is closed too. `drop` closes it without
    waiting, from any thread or event loop."""

    def __init__(self, hold: _Hold) -> None:
        self._hold = hold
        self.options, self.drop, self.searching = hold.options, hold.abandon, hold.begin_search()
        self.searches = defaultdict[str, Searching](hold.begin_search)
        """By agent, if agents of the run have different tools."""
        self.open, self.open_sync, self.close, self.close_sync = hold.open, hold.open_sync, hold.close, hold.close_sync
        self.settle: Callable[[int | None], None] = lambda used: None
        """Call this after a request to the model, with the tokens that it used."""
        self._calls: set[object] = set()
        self._finalizer = weakref.finalize(self, hold.abandon)
        self._finalizer.atexit = False

    async def call(
        self,
        name: str,
        args: Mapping[str, Any],
        tool: Tool,
        *,
        id: str = "",
        messages: Messages = (),
        search: Searching | None = None,
    ) -> Reply:
        """Run a tool, or answer a call of a retrieval tool. Raises what a tool raises, as the framework expects.

        `search`: the agent's search, if a run has several agents.
        """
        search = search or self.searching
        with self._note_call():
            session = await self._hold.open()
            try:
                reply = await self._pass(session, name, args, search.find_answer(name) or tool, id, messages)
            except (Unwritable, self._hold.misfit) as error:
                return await anyio.to_thread.run_sync(_answer, error, search, name, args)
            return await anyio.to_thread.run_sync(search.complete, reply, name, args) if reply.is_error else reply

    def call_sync(self, name: str, args: Mapping[str, Any], tool: Tool, *, id: str = "", messages: Messages = ()) -> Reply:
        with self._note_call():
            session = self._hold.open_sync()
            try:
                reply = self._pass(session, name, args, self.searching.find_answer(name) or tool, id, messages)
            except (Unwritable, self._hold.misfit) as error:
                return _answer(error, self.searching, name, args)
            return self.searching.complete(reply, name, args)

    def _pass(self, session: Any, name: str, args: Mapping[str, Any], tool: Tool, id: str, messages: Messages) -> Any:
        """Return the reply of a `SyncSession`, or an awaitable for the reply of a `Session`."""
        if session.owns(name):
            return session.invoke(name, args, id=id)
        args, said = self._hold.asking.take_off(name, args)
        return session.call(name, args, tool, id=id, errors="raise", intent=said, messages=messages)

    @contextmanager
    def _note_call(self) -> Generator[None]:
        self._calls.add(call := object())
        try:
            yield
        finally:
            self._calls.discard(call)

    @property
    def is_busy(self) -> bool:
        """Whether the run is answering a call, or one of its tools runs in the background."""
        session = self._hold.session
        if self._calls or session is None or is_closed(self._hold.loop):
            return bool(self._calls)
        try:
            return bool(session.running())
        except OverspillError:  # the session has just been closed
            return False

    @property
    def window(self) -> int | None:
        """The size of the model's window, if known."""
        given = self._hold.session
        budget = self.options.new_budget(self._hold.window) if given is None else given.budget
        return self._hold.window if budget is None else budget.window

    def notice(self) -> str:
        """Return what to show the model with the next request, and to keep out of the conversation."""
        session = self._hold.session
        return "" if session is None else session.notice()

    def news(self) -> str:
        """Return which slow tools have finished since this was last called, for frameworks without a place for a notice."""
        session = self._hold.session
        return "" if session is None else session.news()

    def begin_request(self, window: int | None = None) -> Callable[[int | None], None]:
        """Call this before a request to the model. Returns its `settle`, for a run that makes several at the same time."""
        self._hold.window = window
        session = self._hold.session
        budget = None if session is None else session.budget
        mark = None if budget is None else budget.mark()

        def settle(used: int | None) -> None:
            if budget is not None and used:
                budget.settle(used, mark)

        self.settle = settle
        return settle

    @property
    def is_here(self) -> bool:
        """Whether the run's session, if it is open, can be used from this event loop."""
        return self._hold.loop in (None, find_loop())


def refuse(**args: Any) -> str:
    """Stands in for our own tools in a framework's definitions."""
    raise RuntimeError("Overspill answers this tool. Give Overspill's adapter to the agent that offers the tool.")


def _answer(error: Exception, search: Searching, name: str, args: Mapping[str, Any]) -> Reply:
    if isinstance(error, Unwritable):  # an object that only the framework can show, such as its own kind of image
        return Reply(text=str(error), content=[], passed=True, value=error.value)
    if not (why := search.explain(name, args, error)):
        raise error
    return Reply(text=why, content=[text_block(why)], is_error=True)
