"""One conversation's tools, outputs and jobs: wires the rooms together and owns their lifetime."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial, wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeAlias, get_args

import anyio
import anyio.to_thread

from overspill import handles, wording
from overspill.budget import ContextBudget
from overspill.calls.invoke import Tool
from overspill.calls.job import Job
from overspill.calls.service import Background, Errors
from overspill.errors import BadRequest, SessionClosed
from overspill.extraction import Mode, Progress
from overspill.gate.collect import block_text, is_blocks, to_json
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.reading.references import Check
from overspill.record.counters import Counters
from overspill.record.events import Entry
from overspill.record.ledger import Ledger, accounting, logger
from overspill.record.op_tree import Op, op_tree
from overspill.retrieval.definitions import TOOLS, Format, definition
from overspill.retrieval.extractor import ExtractionRequest, Extractor, configured_endpoints
from overspill.retrieval.group import SessionGroup
from overspill.retrieval.outputs import StoredOutput
from overspill.session.parts import SessionParts, hold_shelf
from overspill.settings import Settings
from overspill.store.open import open_store
from overspill.store.protocols import KeepLimits, Shelf, Store
from overspill.types import Extraction, JobInfo, Kept, Kind, Output, Reply, ToolCall

Execute: TypeAlias = Callable[[ToolCall], Any]
Answer: TypeAlias = Callable[[ToolCall], Awaitable[Reply]]
P = ParamSpec("P")


class Session:
    """`async with Session() as session`, or `begin` and `close` where there is no such block.

    `name` opens a kept session again; sessions of one `family` are kept too, and read what ended ones of it kept.
    `models` are asked by their target's name, others at their provider's or at `endpoints`;
    `notice` says whether the host shows the model a notice each turn; where it does not,
    texts tell the model to wait instead.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        name: str = "",
        family: str = "",
        budget: ContextBudget | None = None,
        store: Store | None = None,
        models: Mapping[str, Model] | None = None,
        endpoints: Mapping[str, Endpoint] | None = None,
        notice: bool = True,
    ) -> None:
        _require_type("settings", settings, Settings, "Settings(…)")
        _require_type("budget", budget, ContextBudget, "ContextBudget(window=…)")
        self.settings = settings or Settings()
        self.name = f"{family}/{handles.new()}" if family and not name else name
        self.family = family
        self.budget = budget
        self._store = store or open_store(self.settings.store_dir, run_bytes=self.settings.max_run_bytes)
        self._models = models or {}
        self._endpoints = {**configured_endpoints(self.settings, {}), **(endpoints or {})}
        self._shows_notice = notice
        self._registered: dict[str, Tool] = {}
        self._open: SessionParts | None = None
        self._beginning = anyio.Lock()

    async def begin(self) -> None:
        async with self._beginning:
            if self._open is not None:
                return
            async with hold_shelf(self._open_shelf) as shelf:
                ledger = Ledger(shelf.session, shelf.append_journal, shelf.journal)
                extractor = Extractor(self.settings, ledger, self._models, self._endpoints)
                family = SessionGroup(self._store, self.family) if self.family else None
                opened = SessionParts(self.settings, shelf, ledger, extractor, self.budget, family, notice=self._shows_notice)
                opened.retrieval.inherits = family is not None and await anyio.to_thread.run_sync(family.has_outputs)
                await opened.calls.jobs.open()
                self._open = opened

    async def close(self) -> list[JobInfo]:
        """Cancel what still runs, close the files, apply retention. Returns the jobs whose threads could not be interrupted."""
        if self._open is None:
            return []
        opened, self._open = self._open, None
        left: list[Job] = []
        with anyio.CancelScope(shield=True):
            left = await opened.calls.jobs.abort()
            await anyio.to_thread.run_sync(opened.close)
            if self.family and not opened.gate.kept:  # many come and go, and most keep nothing
                await anyio.to_thread.run_sync(self._store.remove_shelf, opened.shelf.session)
        if left:
            names = ", ".join(f"{job.tool} ({job.artifact_id})" for job in left)
            logger.warning(
                "Session %s is closed; these tools could not be interrupted and go on: %s",
                opened.shelf.session,
                names,
                extra={"go_on": [job.artifact_id for job in left]},
            )
        return [job.info for job in left]

    async def __aenter__(self) -> Session:
        await self.begin()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def stop(self) -> None:
        """Take no new calls; return when what runs in the background has finished. Outputs can still be retrieved."""
        await self._parts.calls.jobs.stop()

    async def abort(self) -> list[JobInfo]:
        """Cancel everything that runs at once. What is stored can still be retrieved."""
        return [job.info for job in await self._parts.calls.jobs.abort()]

    @property
    def id(self) -> str:
        return self._parts.shelf.session

    @property
    def counters(self) -> Counters:
        return self._parts.ledger.counters

    def op_tree(self) -> Op:
        """What happened in this session so far, as a tree."""
        return op_tree(self._parts.ledger.events())

    def accounting(self) -> list[dict[str, Any]]:
        """One entry for each call, of our own tools too, and each request to a model so far, and one for each job that ended."""
        return list(accounting(self._parts.ledger.events(), self.id))

    async def call(
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
    ) -> Reply:
        """Run a tool as `tool(**args)` and answer as the model should see it. Without `tool`: the one registered by that name.

        `background`: whether a slow call may go on there, or "now" for one that does so from the beginning. `check` says what is
        wrong with arguments into which stored outputs were filled, or None: then the tool is not called.
        """
        if tool is None and self.owns(name):
            return await self.invoke(name, args, id=id)
        call = ToolCall(id, name, args or {}, server, kind)
        tool = self._callable(name, tool)
        if errors not in ("answer", "raise"):
            raise BadRequest(f"errors is {errors!r}; allowed: 'answer', 'raise'.")
        if background not in (None, True, False, "now"):
            raise BadRequest(f"background is {background!r}; allowed: None, True, False, 'now'.")
        return await self._parts.calls.call(call, tool, errors=errors, background=background, check=check)

    async def turn(
        self,
        calls: Sequence[ToolCall],
        execute: Execute | None = None,
        *,
        model: str | None = None,
        answer: Answer | None = None,
    ) -> list[Reply]:
        """All calls of a turn, in parallel, ours and the host's, in their order. `execute` runs one of the host's.

        `model` names the model of this turn; it extracts where no other is configured. `answer` is for a host that answers
        every call itself, with `session.call`, `session.invoke` or without.
        """
        opened = self._parts
        for call in calls:
            _require_type("a call of the turn", call, ToolCall, "ToolCall(id, name, args)")

        async def reply(call: ToolCall) -> Reply:
            if answer is not None:
                return await answer(call)
            if self.owns(call.name):
                return await self.invoke(call.name, call.args, id=call.id)
            if execute is not None:
                return await opened.calls.call(call, partial(opened.calls.execute, execute, call))
            return await opened.calls.call(call, self._tool(call.name))

        with opened.retrieval.in_turn(model):
            return await opened.calls.turn(calls, reply)

    async def start(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        tool: Tool | None = None,
        *,
        server: str = "",
        kind: Kind = "function",
    ) -> str:
        """Run in the background from the beginning. Returns the id to ask for the output with."""
        call = ToolCall("", name, args or {}, server, kind)
        return (await self._parts.calls.start(call, self._callable(name, tool))).artifact_id

    async def invoke(self, name: str, args: Mapping[str, Any] | None = None, *, id: str = "") -> Reply:
        """Answer a call of one of our own tools. Mistakes of the model are answers too."""
        return await self._parts.retrieval.invoke(name, args or {}, id)

    def owns(self, name: str) -> bool:
        return name in TOOLS

    def tools(self, format: Format = "jsonschema") -> list[dict[str, Any]]:
        """Definitions of the retrieval tools to offer now."""
        if format not in get_args(Format):
            raise BadRequest(f"format is {format!r}; allowed: {', '.join(map(repr, get_args(Format)))}.")
        return [definition(name, format) for name in self._parts.retrieval.tools_to_offer()]

    def notice(self) -> str:
        """The "Async Tool Status" section of this turn, or an empty text. Made afresh, never part of a conversation."""
        return wording.notice(self._parts.retrieval.statuses())

    def kept(self) -> list[Kept]:
        """What is stored, oldest first."""
        return list(self._parts.gate.kept)

    def news(self) -> str:
        """Which jobs have completed since this was last asked; for hosts that cannot show a notice."""
        return self._parts.retrieval.news()

    def options(self) -> str:
        """The moves a model has now, to go with the notice."""
        return wording.options(self._parts.retrieval.statuses())

    def note(self, event: Entry) -> None:
        """Put on record what a host did itself: a turn that began, a request to a model."""
        self._parts.ledger.record(event)

    async def keep(self, data: Any, name: str = "output") -> Kept:
        """Store something of the host's own, whatever its size. Of a stream that fails, what came is kept as incomplete.

        Content blocks that are not all text are stored as their JSON, so that nothing of them is missing.
        """
        gate, call = self._parts.gate, ToolCall("", name)
        if data is None:
            raise BadRequest(f"There is nothing to store as {name!r}: it is None.")
        got = gate.collector(self.settings.for_tool(name))
        blocks = data.content if isinstance(data, Output) else data if is_blocks(data) else ()
        if any(block_text(block) is None for block in blocks):
            data = await anyio.to_thread.run_sync(to_json, blocks)
        try:
            await got.take(data)
            if got.error is not None and not got.broke_off:
                raise got.error
            return await gate.keep(call, got, "requested")
        except BaseException:
            got.discard()
            raise

    def open(self, handle: str) -> StoredOutput:
        """A stored output of this session, to read without a model. `with` closes it."""
        return self._parts.outputs.open(handle)

    async def extract(
        self,
        handle: str,
        query: str,
        *,
        mode: Mode = "auto",
        max_tokens: int = 2000,
        models: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Extraction:
        """What `tool_output` does, for a host. `models` are asked instead of the configured ones, in order."""
        opened = self._parts
        if max_tokens < 1:
            raise BadRequest(f"max_tokens is {max_tokens}; it must be at least 1.")
        wish = ExtractionRequest(tool="extract", query=query, mode=mode, max_tokens=max_tokens, targets=tuple(models))
        with await anyio.to_thread.run_sync(opened.outputs.open, handle) as stored:
            return await opened.extractor.extract(stored, opened.gate.arguments.get(stored.kept.id, "{}"), wish, progress)

    def tool(self, function: Callable[P, Any]) -> Callable[P, Awaitable[str]]:
        """Register a function under its name. Called directly, it goes through the gate and returns the text for the model."""
        name = getattr(function, "__name__", type(function).__name__)
        signature = inspect.signature(function)
        if self.owns(name):
            raise BadRequest(f"{name} cannot be a tool: Overspill has one of that name, which a model would get. Rename it.")
        if any(each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in signature.parameters.values()):
            raise BadRequest(f"{name} cannot be a tool: a model names its arguments, and {signature} has some without a name.")
        self._registered[name] = function

        @wraps(function)
        async def gated(*args: P.args, **kwargs: P.kwargs) -> str:
            named: dict[str, Any] = {}
            for key, value in signature.bind(*args, **kwargs).arguments.items():
                named |= value if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD else {key: value}
            return (await self.call(name, named, function, errors="raise")).text

        return gated

    def _callable(self, name: str, tool: Tool | None) -> Tool:
        if tool is None:
            return self._tool(name)
        if not callable(tool):
            raise BadRequest(f"The tool {name} is of type {type(tool).__name__}; it has to be something that can be called.")
        return tool

    def _tool(self, name: str) -> Tool:
        if name in self._registered:
            return self._registered[name]
        raise BadRequest(wording.unknown_tool(name, [*self._registered, *self.settings.surface]))

    @property
    def _parts(self) -> SessionParts:
        if self._open is None:
            raise SessionClosed("The session is not open. Use `async with Session() as session`, or await session.begin() first.")
        return self._open

    def _open_shelf(self) -> Shelf:
        settings, store = self.settings, self._store
        retention = "keep" if self.name else settings.retention
        limits = KeepLimits(settings.keep_days, settings.keep_bytes) if retention == "keep" else None
        return store.open_shelf(handles.new(), name=self.name, retention=retention, limits=limits)


def _require_type(what: str, given: object, kind: type, example: str) -> None:
    if given is not None and not isinstance(given, kind):
        raise BadRequest(f"{what} is of type {type(given).__name__}; it has to be {example}.")
