"""A blocking Session for programs without an event loop: the asynchronous one, run on a loop of its own in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from overspill.counters import Counters
from overspill.errors import SessionClosed
from overspill.optree import Op
from overspill.perform import Tool
from overspill.session import Session
from overspill.stored import StoredOutput
from overspill.types import Extraction, JobInfo, Kept, Reply, ToolCall


class SyncSession:
    """`with SyncSession() as session`. Takes what `Session` takes; every method blocks. Safe to use from several threads."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._session = Session(*args, **options)
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> SyncSession:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._session))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._portal = None
        self._stack.__exit__(kind, error, trace)

    def call(self, name: str, args: Mapping[str, Any] | None = None, tool: Tool | None = None, **options: Any) -> Reply:
        return self._run(partial(self._session.call, name, args, tool, **options))

    def turn(self, calls: Sequence[ToolCall], execute: Callable[[ToolCall], Any] | None = None, **options: Any) -> list[Reply]:
        return self._run(partial(self._session.turn, calls, execute, **options))

    def invoke(self, name: str, args: Mapping[str, Any]) -> Reply:
        return self._run(partial(self._session.invoke, name, args))

    def start(self, name: str, args: Mapping[str, Any] | None = None, tool: Tool | None = None, **options: Any) -> str:
        return self._run(partial(self._session.start, name, args, tool, **options))

    def keep(self, data: Any, name: str = "output") -> Kept:
        return self._run(partial(self._session.keep, data, name))

    def open(self, handle: str) -> StoredOutput:
        return self._session.open(handle)

    def owns(self, name: str) -> bool:
        return self._session.owns(name)

    def tools(self, format: Any = "jsonschema") -> list[dict[str, Any]]:
        return self._session.tools(format)

    def notice(self) -> str:
        return self._session.notice()

    def extract(self, handle: str, query: str, **options: Any) -> Extraction:
        return self._run(partial(self._session.extract, handle, query, **options))

    def op_tree(self) -> Op:
        return self._session.op_tree()

    def accounting(self) -> list[dict[str, Any]]:
        return self._session.accounting()

    @property
    def id(self) -> str:
        return self._session.id

    def stop(self) -> None:
        self._run(self._session.stop)

    def abort(self) -> list[JobInfo]:
        return self._run(self._session.abort)

    @property
    def counters(self) -> Counters:
        return self._session.counters

    def _run(self, work: Callable[[], Any]) -> Any:
        if self._portal is None:
            raise SessionClosed("The session is not open. Use `with SyncSession() as session`.")
        return self._portal.call(work)
