"""A session: the tools, stored outputs and background jobs of one conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeAlias, get_args

from overspill.budget import ContextBudget
from overspill.calls.invoke import Tool
from overspill.calls.service import Background, Errors
from overspill.errors import require
from overspill.extraction import Mode, Progress
from overspill.gate.intent import Messages, remember_said
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.reading.references import Check
from overspill.record.counters import Counters
from overspill.record.events import Entry
from overspill.record.logs import Observers
from overspill.record.op_tree import Op, accounting, op_tree
from overspill.retrieval.definitions import Format
from overspill.retrieval.delivery import SessionJobs
from overspill.retrieval.extractor import ExtractionRequest
from overspill.retrieval.output import StoredOutput
from overspill.session.opening import SessionLife, check_extraction, check_options, check_turn, prepare_opening
from overspill.session.registry import OfferedTools, ToolRegistry
from overspill.settings import Settings
from overspill.sql.answers import SqlAnswer
from overspill.store.protocols import Store
from overspill.text.arguments import read_arguments
from overspill.types import Extraction, JobInfo, Kept, Kind, Reply, ToolCall
from overspill.wording import slow_tools

Execute: TypeAlias = Callable[[ToolCall], Any]
Answer: TypeAlias = Callable[[ToolCall], Awaitable[Reply]]
P = ParamSpec("P")


class Session:
    """Use it as `async with Session() as session`, or call `begin` and `close` yourself.

    `name` keeps the session, and opens it again later; if it is `shared`, several workers have it open at the same time. Sessions
    of one `family` are kept too, and can read what earlier ones stored. `models` are your own, by target name; others are
    reached at their provider or at `endpoints`. `notice`: whether you show the model a notice each turn; if not, it has to wait.
    `preload`: load the vocabulary that counts tokens at the beginning, not with the first large output. `tool_prefix` precedes
    the names of retrieval tools. `jobs`: a queue whose workers run other tools. `secrets`: values by name, as in `os.environ`.
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
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        opening = prepare_opening(
            settings,
            store,
            name=name,
            shared=shared,
            family=family,
            jobs=jobs,
            budget=budget,
            models=models,
            endpoints=endpoints,
            observers=observers,
            notice=notice,
            preload=preload,
            secrets=secrets,
        )
        self.settings, self.budget, self.redaction = opening.settings, budget, opening.redaction
        self.name, self.family, self.is_shared = opening.name, opening.family, opening.is_shared
        self._life, self._counts_kept = SessionLife(opening), preload
        self._offered, self.tool_prefix = OfferedTools(self.settings, tool_prefix), tool_prefix
        self._registry = ToolRegistry(self._offered.names)
        self.offer_to_programs = self._registry.offer_to_programs
        self.owns, self.tool_search = self._offered.owns, partial(self._offered.search_for, self.tool)

    async def begin(self) -> None:
        self._registry.attach(await self._life.begin())

    async def close(self) -> list[JobInfo]:
        """Cancel running jobs, close the files and apply retention. Returns the jobs whose threads could not be interrupted."""
        return await self._life.close()

    async def __aenter__(self) -> Session:
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def stop(self) -> None:
        """Refuse new calls, and return when every background job has finished. Outputs can still be retrieved."""
        await self._life.parts_here.calls.jobs.stop()

    async def abort(self) -> list[JobInfo]:
        """Cancel every running job, including those of other workers that share the session. Outputs can still be retrieved."""
        return [job.info for job in await self._life.parts_here.abort()]

    @property
    def id(self) -> str:
        return self._life.parts.shelf.session

    @property
    def counters(self) -> Counters:
        return self._life.parts.ledger.counters

    def op_tree(self) -> Op:
        """What happened in this session so far, as a tree."""
        return op_tree(self._life.parts.ledger.events())

    def accounting(self) -> list[dict[str, Any]]:
        """One entry for each tool call, each request to a model and each finished background job so far."""
        return list(accounting(self._life.parts.ledger.events(), self.id))

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
        intent: str = "",
        for_program: bool = False,
        messages: Messages = (),
    ) -> Reply:
        """Run a tool as `tool(**args)` and return what the model should see. Without `tool`, run the one registered as `name`.

        `background`: whether a slow call may move to the background; "now" starts it there. `check` returns what is wrong with
        arguments into which stored outputs were filled, or None; if it returns a problem, the tool is not called. `intent` says
        in words what you are looking for: if the output is stored, the reply shows passages that match it. Without it, the end of
        `messages`, the conversation or a function that returns it, says what to look for. `for_program`: pass the result whole,
        and still keep it if it is large.
        """
        call = ToolCall(id, name, {} if args is None else args, server, kind, intent)
        if tool is None and self.owns(name):
            return await self.invoke(name, args, id=id)
        tool = self._registry.find(name, tool)
        check_options(errors, background, check)
        parts = self._life.parts_here
        calling = parts.calls.call(call, tool, errors=errors, background=background, check=check, for_program=for_program)
        return await self._offered.run(calling, parts.gate, messages)

    async def turn(
        self,
        calls: Sequence[ToolCall],
        execute: Execute | None = None,
        *,
        model: str | None = None,
        answer: Answer | None = None,
        messages: Sequence[Any] = (),
    ) -> list[Reply]:
        """Answer all calls of a turn in parallel, and return the replies in the order of the calls. `execute` runs your tools.

        `model` is the model of this turn; it extracts if no other is configured. With `answer` you answer every call yourself,
        for example with `session.call` and `session.invoke`. `messages` is the conversation: its end says what to look for.
        """
        check_turn(calls, model, messages, execute=execute, answer=answer)
        parts = self._life.parts_here
        with parts.retrieval.in_turn(model), remember_said(parts.gate, messages), self._offered.naming():
            return await parts.calls.turn(calls, answer or partial(self._answer, execute), parts.retrieval.deliver)

    async def start(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        tool: Tool | None = None,
        *,
        server: str = "",
        kind: Kind = "function",
        intent: str = "",
    ) -> str:
        """Start a tool in the background. Returns the id to retrieve its output with. `intent` is as in `call`."""
        call = ToolCall("", name, {} if args is None else args, server, kind, intent)
        return (await self._life.parts_here.calls.start(call, self._registry.find(name, tool))).artifact_id

    async def invoke(self, name: str, args: Mapping[str, Any] | None = None, *, id: str = "") -> Reply:
        """Answer a model's call of a retrieval tool. A mistake of the model is answered too, not raised."""
        require("name", name, str, "the name of a retrieval tool")
        require("id", id, str, "a string")
        given: Any = {} if args is None else read_arguments(args)
        if self._offered.searches(name):
            return await self._answer(None, ToolCall(id, name, given))
        own = name[len(self._offered.prefix) :] if self.owns(name) else name  # some hosts remove the prefix themselves
        with self._offered.naming():
            return await self._life.parts_here.invoke(own, given, id)

    def tools(self, format: Format = "jsonschema") -> list[dict[str, Any]]:
        """The definitions of the retrieval tools to offer the model: the same before the session begins and until it ends."""
        return self._offered.define(format)

    @property
    def has_outputs(self) -> bool:
        """Whether there is, or ever was, anything for the retrieval tools to read."""
        return self._life.parts.retrieval.are_needed

    def notice(self) -> str:
        """The "Async Tool Status" section of this turn, or an empty string. Show it, but keep it out of the conversation."""
        with self._offered.naming():
            notice = self.settings.wording.notice(self._life.parts.describe_jobs())
        return self._life.parts.recorder.show("notice", notice)

    def kept(self) -> list[Kept]:
        """The stored outputs, oldest first."""
        return self._life.parts.list_kept()

    def running(self) -> list[JobInfo]:
        """The background jobs that have not finished."""
        return self._life.parts.list_running()

    @property
    def jobs(self) -> SessionJobs:
        """The background jobs of the session, by id."""
        return self._life.parts_here.jobs

    def news(self) -> str:
        """A list of the jobs that completed since the last call of `news`, for hosts that cannot show a notice."""
        return self._life.parts.retrieval.news()

    def options(self) -> str:
        """What the model can do next. Show it with the notice."""
        with self._offered.naming():
            return slow_tools.options(self._life.parts.describe_jobs(), has_wait_tool=self.settings.wording.has_closed_sets)

    def note(self, event: Entry) -> None:
        """Record something that you did yourself, such as beginning a turn or asking a model."""
        require("event", event, get_args(Entry), "one of the events in overspill.record.events")
        self._life.parts.ledger.record(event)

    async def keep(self, data: Any, name: str = "output", *, call: ToolCall | None = None) -> Kept:
        """Store data of any size. If a stream fails, what has arrived; if not all blocks are text, their JSON. `call` says
        which call it answers, if you made one yourself."""
        return await self._life.parts_here.keep(data, name, call, count_tokens=self._counts_kept)

    def open(self, handle: str) -> StoredOutput:
        """Open a stored output of this session, to read it without a model. Close it, or use it in a `with` block."""
        return self._life.parts.outputs.open(handle)

    async def sql(self, statement: str) -> SqlAnswer:
        """Query the tables in stored outputs. A statement calls them by their names: `SELECT count(*) FROM out_3f7k9q`."""
        return await self._life.parts_here.tables.ask(statement)

    async def run_program(self, code: str, *, background: Background | None = None, names: Mapping[str, str] = {}) -> Reply:
        """Run a Python program over stored outputs. What it prints passes the gate. `names` are further names of outputs."""
        with self._offered.naming():
            return await self._life.parts_here.programs.run(code, background=background, aliases=names)

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
        """Extract from a stored output, as `tool_output` does. Tries `models`, in order, instead of the configured ones."""
        check_extraction(query, mode, max_tokens, models, progress)
        request = ExtractionRequest(tool="extract", query=query, mode=mode, max_tokens=max_tokens, targets=tuple(models))
        return await self._life.parts_here.extract(handle, request, progress)

    async def compact(self, messages: Sequence[Any], window: int, *, threshold: float = 0.7, keep_turns: int = 2) -> list[Any]:
        """The messages, with the names of old results in place of their texts if all take more than this share of the window."""
        with self._offered.naming():
            return await self._life.parts_here.compactor.compact(messages, window, threshold=threshold, keep_turns=keep_turns)

    def tool(self, function: Callable[P, Any]) -> Callable[P, Awaitable[str]]:
        """Register a function under its name. Calling the result goes through the gate and returns the text for the model."""

        async def call(name: str, args: dict[str, Any]) -> str:
            return (await self.call(name, args, function, errors="raise")).text

        return self._registry.register(function, call)

    async def _answer(self, execute: Execute | None, call: ToolCall) -> Reply:
        calls = self._life.parts_here.calls
        if self._offered.searches(call.name):
            return await self._offered.answer_search(calls, call, partial(self._answer, execute))
        if self.owns(call.name):
            return await self.invoke(call.name, call.args, id=call.id)
        return await calls.call(call, partial(calls.execute, execute, call) if execute else self._registry.find(call.name))
