"""A blocking session for programs without an event loop: runs a `Session` on an event loop in another thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial, wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from overspill.budget import ContextBudget
from overspill.calls.invoke import Tool
from overspill.calls.service import Background, Errors
from overspill.extraction import Mode, Progress
from overspill.gate.intent import Messages
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.reading.references import Check
from overspill.record.counters import Counters
from overspill.record.observers import Observers
from overspill.record.op_tree import Op
from overspill.retrieval.definitions import Format
from overspill.retrieval.output import StoredOutput
from overspill.session.loop_thread import LoopThread
from overspill.session.session import Execute, Session
from overspill.settings import Settings
from overspill.sql.answers import SqlAnswer
from overspill.store.protocols import Store
from overspill.types import Extraction, JobInfo, Kept, Kind, Reply, ToolCall

P = ParamSpec("P")
R = TypeVar("R")


class SyncSession:
    """Use it as `with SyncSession() as session`. Every method does what the method of `Session` does, but blocks.

    You may use one session from several threads.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        name: str = "",
        shared: bool = False,
        family: str = "",
        budget: ContextBudget | None = None,
        store: Store | str | None = None,
        models: Mapping[str, Model] | None = None,
        endpoints: Mapping[str, Endpoint] | None = None,
        notice: bool = True,
        preload: bool = True,
        tool_prefix: str = "",
        observers: Observers = (),
        jobs: str | None = None,
    ) -> None:
        self._session = Session(
            settings,
            name=name,
            shared=shared,
            family=family,
            budget=budget,
            store=store,
            models=models,
            endpoints=endpoints,
            notice=notice,
            preload=preload,
            tool_prefix=tool_prefix,
            observers=observers,
            jobs=jobs,
        )
        self._thread = LoopThread()

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
    def settings(self) -> Settings:
        return self._session.settings

    @property
    def budget(self) -> ContextBudget | None:
        return self._session.budget

    @property
    def counters(self) -> Counters:
        return self._run(lambda: self._session.counters)

    def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        tool: Tool | None = None,
        *,
        id: str = "",
        server: str = "",
        kind: Kind = "function",
        errors: Errors = "answer",
        background: Background | None = None,
        check: Check | None = None,
        intent: str = "",
        messages: Messages = (),
    ) -> Reply:
        more = {"id": id, "server": server, "kind": kind, "errors": errors, "background": background, "check": check}
        return self._run(partial(self._session.call, name, args, tool, intent=intent, messages=messages, **more))

    def turn(
        self,
        calls: Sequence[ToolCall],
        execute: Execute | None = None,
        *,
        model: str | None = None,
        messages: Sequence[Any] = (),
    ) -> list[Reply]:
        return self._run(partial(self._session.turn, calls, execute, model=model, messages=messages))

    def start(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        tool: Tool | None = None,
        *,
        server: str = "",
        kind: Kind = "function",
        intent: str = "",
    ) -> str:
        return self._run(partial(self._session.start, name, args, tool, server=server, kind=kind, intent=intent))

    def invoke(self, name: str, args: Mapping[str, Any] | None = None, *, id: str = "") -> Reply:
        return self._run(partial(self._session.invoke, name, args, id=id))

    def owns(self, name: str) -> bool:
        return self._session.owns(name)

    def tools(self, format: Format = "jsonschema") -> list[dict[str, Any]]:
        return self._session.tools(format)

    def notice(self) -> str:
        return self._run(self._session.notice)

    def news(self) -> str:
        """Adapters ask this after each call, and most sessions have nothing to tell. Then no other thread has to be woken."""
        is_silent = self._thread.is_running and not self._session.has_outputs
        return "" if is_silent else self._run(self._session.news)

    def keep(self, data: Any, name: str = "output") -> Kept:
        return self._run(partial(self._session.keep, data, name))

    def running(self) -> list[JobInfo]:
        return self._run(self._session.running)

    def kept(self) -> list[Kept]:
        return self._run(self._session.kept)

    def open(self, handle: str) -> StoredOutput:
        return self._session.open(handle)

    def sql(self, statement: str) -> SqlAnswer:
        return self._run(partial(self._session.sql, statement))

    def extract(
        self,
        handle: str,
        query: str,
        *,
        mode: Mode = "auto",
        max_tokens: int = 2000,
        models: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Extraction:
        return self._run(
            partial(self._session.extract, handle, query, mode=mode, max_tokens=max_tokens, models=models, progress=progress)
        )

    def compact(self, messages: Sequence[Any], window: int, *, threshold: float = 0.7, keep_turns: int = 2) -> list[Any]:
        return self._run(partial(self._session.compact, messages, window, threshold=threshold, keep_turns=keep_turns))

    def tool(self, function: Callable[P, Any]) -> Callable[P, str]:
        gated = self._session.tool(function)

        @wraps(function)
        def blocking(*args: P.args, **kwargs: P.kwargs) -> str:
            return self._run(partial(gated, *args, **kwargs))

        return blocking

    def op_tree(self) -> Op:
        return self._run(self._session.op_tree)

    def accounting(self) -> list[dict[str, Any]]:
        return self._run(self._session.accounting)

    def stop(self) -> None:
        self._run(self._session.stop)

    def abort(self) -> list[JobInfo]:
        return self._run(self._session.abort)

    def _run(self, work: Callable[[], Awaitable[R] | R]) -> R:
        """Run in the session's thread, so that no other thread sees a change half made."""
        return self._thread.run(work)
