"""A blocking session for programs without an event loop: runs a `Session` on an event loop in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial, wraps
from inspect import isawaitable
from threading import Condition, get_ident
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from anyio.from_thread import start_blocking_portal

from overspill.errors import BadRequest, SessionClosed
from overspill.record.counters import Counters
from overspill.retrieval.definitions import Format
from overspill.retrieval.output import StoredOutput
from overspill.session.session import Execute, Session
from overspill.types import Reply, ToolCall

P = ParamSpec("P")
R = TypeVar("R")


class LoopThread:
    """Runs work on its event loop between `start` and `stop`. Any thread but its own may submit work."""

    def __init__(self) -> None:
        self._thread = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._id = 0
        self._callers = 0
        self._fewer_callers = Condition()

    def start(self) -> None:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            self._loop, self._id = portal.call(lambda: (asyncio.get_running_loop(), get_ident()))
            self._thread = stack.pop_all()

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def run(self, work: Callable[[], Awaitable[R] | R]) -> R:
        with self._fewer_callers:
            self._callers += 1  # keeps the loop from ending during the call
        try:
            if (loop := self._loop) is None:
                raise SessionClosed("The session is not open. Use `with SyncSession() as session`.")
            if get_ident() == self._id:
                raise BadRequest(
                    "This session was called from its own thread, which would then wait for itself. "
                    "Make the tool that calls it a plain function instead of an async one, or use Session."
                )
            return _run_on(loop, work)
        finally:
            with self._fewer_callers:
                self._callers -= 1
                self._fewer_callers.notify_all()

    def stop(self, last: Callable[[], Awaitable[object]]) -> None:
        """Take no more work, run `last`, and end when all earlier work has ended."""
        loop, self._loop = self._loop, None
        with self._thread:
            if loop is not None:
                _run_on(loop, last)
            with self._fewer_callers:
                self._fewer_callers.wait_for(lambda: not self._callers)


def _run_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[R] | R]) -> R:
    async def run() -> R:
        result = work()
        return await result if isawaitable(result) else cast("R", result)

    return asyncio.run_coroutine_threadsafe(run(), loop).result()


def _taking(
    method: Callable[Concatenate[Session, P], R],
) -> Callable[[Callable[..., R]], Callable[Concatenate[SyncSession, P], R]]:
    """Give a method the signature of the same method of `Session`."""
    return wraps(method)


class SyncSession:
    """Use it as `with SyncSession() as session`. Every method does what the method of `Session` does, but blocks.

    You may use one session from several threads.
    """

    @_taking(Session.__init__)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._session = Session(*args, **options)
        self.settings, self.budget = self._session.settings, self._session.budget
        self.owns, self.offer_to_programs = self._session.owns, self._session.offer_to_programs
        self.tool_search, self.tool_prefix = self._session.tool_search, self._session.tool_prefix
        self._thread = LoopThread()
        self._run = self._thread.run  # in the session's thread, so that other threads never see a half-made change

    def __enter__(self) -> SyncSession:
        self._thread.start()
        try:
            self._run(self._session.begin)
        except BaseException:
            self._thread.stop(self._session.close)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._thread.stop(self._session.close)

    @property
    def id(self) -> str:
        return self._session.id

    @property
    def counters(self) -> Counters:
        return self._run(lambda: self._session.counters)

    def turn(
        self,
        calls: Sequence[ToolCall],
        execute: Execute | None = None,
        *,
        model: str | None = None,
        messages: Sequence[Any] = (),
    ) -> list[Reply]:
        return self._run(partial(self._session.turn, calls, execute, model=model, messages=messages))

    def tools(self, format: Format = "jsonschema") -> list[dict[str, Any]]:
        return self._session.tools(format)

    def news(self) -> str:
        """Like `Session.news`. Adapters call this after each call, so it wakes the other thread only if there is news."""
        is_silent = self._thread.is_running and not self._session.has_outputs
        return "" if is_silent else self._run(self._session.news)

    def open(self, handle: str) -> StoredOutput:
        return self._session.open(handle)

    def tool(self, function: Callable[P, Any]) -> Callable[P, str]:
        gated = self._session.tool(function)

        @wraps(function)
        def blocking(*args: P.args, **kwargs: P.kwargs) -> str:
            return self._run(partial(gated, *args, **kwargs))

        return blocking

    @staticmethod
    def _blocking(method: Callable[Concatenate[Session, P], Awaitable[R] | R]) -> Callable[Concatenate[SyncSession, P], R]:
        """A blocking form of a method of `Session`, which runs in the session's thread."""

        @wraps(method)
        def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._run(partial(method, self._session, *args, **kwargs))

        return run

    call = _blocking(Session.call)
    start = _blocking(Session.start)
    invoke = _blocking(Session.invoke)
    notice = _blocking(Session.notice)
    keep = _blocking(Session.keep)
    running = _blocking(Session.running)
    kept = _blocking(Session.kept)
    sql = _blocking(Session.sql)
    run_program = _blocking(Session.run_program)
    extract = _blocking(Session.extract)
    compact = _blocking(Session.compact)
    op_tree = _blocking(Session.op_tree)
    accounting = _blocking(Session.accounting)
    stop = _blocking(Session.stop)
    abort = _blocking(Session.abort)
