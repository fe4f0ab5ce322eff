"""Routes an agent's calls: its tools through the gate, retrieval to the session, the agent's own tools to itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anyio.to_thread
import msgspec
from msgspec import Struct

from overspill.agent import internal, wording
from overspill.agent.internal import BATCH, REPORT, STATUS
from overspill.agent.models import AgentModels
from overspill.agent.progress import CallEnded, CallStarted, ModelSaid, Observe
from overspill.errors import BadRequest, OverspillError
from overspill.gate.collect import block_text, field
from overspill.gate.intent import add_argument, asks, take_off
from overspill.models.conversation import describe_bad_call, run_in_parallel
from overspill.models.protocol import Message
from overspill.programs.tools import ProgramTool
from overspill.record.events import ToolCalled, now_ms
from overspill.retrieval.definitions import definition
from overspill.session.session import Session
from overspill.text.arguments import chars_in
from overspill.text.humanize import one_line
from overspill.text.lenient_json import dumps, ready
from overspill.types import Reply, ToolCall


class _BatchedCall(Struct, frozen=True):
    tool: str
    id: str | int = ""
    parameters: dict[str, Any] = {}


class _Batch(Struct, frozen=True):
    calls: tuple[_BatchedCall, ...]


class ToolRouter(Struct, eq=False):
    name: str
    session: Session
    offers: Mapping[str, ProgramTool]
    models: AgentModels
    observe: Observe
    turn: int = 0
    answers: dict[tuple[int, str], str] = {}
    """What the model received, by turn and call id."""
    background: dict[str, str] = {}
    """The tools that went to the background, by job id."""
    _definitions: list[dict[str, Any]] = []
    _is_final: bool = False
    _is_report_alone: bool = True
    _quota: dict[str, int] = {}
    """By id of each call of this turn, how many tool calls it may make; a batch makes several."""

    def __post_init__(self) -> None:
        self.session.offer_to_programs(self.list_for_programs)

    async def list_for_programs(self) -> list[ProgramTool]:
        return list(self.offers.values())

    def open_turn(self, turn: int, report: dict[str, Any], *, final: bool, alone: bool) -> tuple[dict[str, Any], ...]:
        """The tools offered in this turn: the same in every turn, so that prompt caches stay valid, unless the report is `alone`.

        In a final turn, only the report can be called.
        """
        self.turn, self._is_final = turn, final
        tools: list[dict[str, Any]] = []
        for offer in self.offers.values():
            schema = offer.parameters or {}
            parameters = add_argument(schema) if self._asks(offer) else schema
            tools.append({"name": offer.name, "description": offer.description, "parameters": parameters})
        if alone or not tools:
            self._definitions = [report]
        else:
            offered = [*tools, *self.session.tools(), internal.TASK_STATUS]
            self._definitions = [*offered, internal.batch(offered), report]
        return tuple(self._definitions)

    async def run_calls(
        self, calls: Sequence[ToolCall], model: str | None, messages: Sequence[Message] = ()
    ) -> Sequence[Message]:
        """Run calls of `model`, which also extracts for them unless another model is configured. `messages` led to the calls."""
        self._is_report_alone = all(call.name in (STATUS, REPORT) for call in calls)
        self._quota = self._share_quota(calls)
        replies = await self.session.turn(calls, model=model, answer=self._answer, messages=messages)
        self.models.guard.count_replies(replies)
        for call, reply in zip(calls, replies, strict=True):
            self.answers[self.turn, call.id] = reply.text  # if the turn waited, this is the output of a job and not its id
        return [
            Message("tool", _render_reply(reply), call_id=call.id, is_error=reply.is_error)
            for call, reply in zip(calls, replies, strict=True)
        ]

    def find_problem(self, call: ToolCall) -> str:
        """Return why a call cannot run; empty if it can. Before the final turn, retrieval tools work even if not offered."""
        if self._is_final and call.name != REPORT:
            return wording.FINAL_TURN
        is_retrieval = self.session.owns(call.name)
        return describe_bad_call(call, [definition(call.name, "jsonschema")] if is_retrieval else self._definitions)

    def record_refused(self, call: ToolCall, answer: str) -> None:
        """Record a call that was refused before it reached the router."""
        if (self.turn, call.id) not in self.answers:
            self._record(call, answer, time.perf_counter(), failed=True)

    async def _answer(self, call: ToolCall) -> Reply:
        started = time.perf_counter()
        self.observe(CallStarted(self.name, call.id, call.name))
        try:
            reply = await self._reply(call, started)
        except OverspillError as error:  # a failure becomes an answer
            reply = self._answer_directly(call, str(error), started, failed=True)
        self.answers[self.turn, call.id] = reply.text
        if reply.job is not None:
            self.background[reply.job.id] = call.name
        failed = one_line(reply.text) if reply.is_error else ""
        job = reply.job.id if reply.job else ""
        self.observe(CallEnded(self.name, call.id, call.name, time.perf_counter() - started, failed, reply.kept, job))
        return reply

    async def _reply(self, call: ToolCall, started: float) -> Reply:
        if self.session.owns(call.name):
            return await self.session.invoke(call.name, call.args, id=call.id)
        if call.name == STATUS:
            self.observe(ModelSaid(self.name, str(call.args.get("now", ""))))
            return self._answer_directly(call, wording.NOTED, started)
        if call.name == REPORT:
            if not self._is_report_alone:
                raise BadRequest(wording.NOT_ALONE)
            await anyio.to_thread.run_sync(self.models.reports.submit, call.args)
            return self._answer_directly(call, wording.ACCEPTED, started)
        return await (self._batch(call, started) if call.name == BATCH else self._call(call))

    async def _call(self, call: ToolCall) -> Reply:
        if self._quota.get(call.id, 1) == 0:
            raise BadRequest(wording.too_many_calls(self.session.settings.max_tool_calls_per_turn))
        offer, args, looking_for = self.offers[call.name], dict(call.args), ""
        if self._asks(offer):
            args, looking_for = take_off(args)
        is_background = offer.kind == "agent" and args.pop("async", False) is True and self.session.settings.background
        return await self.session.call(
            call.name,
            args,
            offer.run,
            id=call.id,
            server=offer.server,
            kind=offer.kind,
            background="now" if is_background else None,
            check=offer.check,
            intent=looking_for,
        )

    def _asks(self, offer: ProgramTool) -> bool:
        return asks(self.session.settings.for_tool(offer.name, offer.server), offer.parameters)

    async def _batch(self, call: ToolCall, started: float) -> Reply:
        """Run a batch's calls in parallel, and return all results in one JSON object. A mistake in a call becomes the result of
        that call. If a call went to the background, its result says how to get the output."""
        try:
            batch = msgspec.convert(dict(call.args), ready(_Batch))
        except msgspec.ValidationError as error:
            raise BadRequest(wording.bad_arguments(BATCH, str(error))) from None
        replies: list[Reply] = []

        async def run_one(numbered: tuple[int, _BatchedCall]) -> dict[str, Any]:
            index, entry = numbered
            id, begun = str(entry.id or index + 1), time.perf_counter()
            inner = ToolCall(f"{call.id}/{id}", entry.tool, entry.parameters)
            try:
                if entry.tool in (BATCH, REPORT):
                    raise BadRequest(wording.not_in_batch(entry.tool))
                if index >= self._quota[call.id]:
                    raise BadRequest(wording.too_many_calls(self.session.settings.max_tool_calls_per_turn))
                if problem := self.find_problem(inner):
                    raise BadRequest(problem)
                replies.append(reply := await self._answer(inner))
                ok, text = not reply.is_error, _render_reply(reply)
            except BadRequest as error:
                ok, text = False, str(error)
            elapsed = round((time.perf_counter() - begun) * 1000)
            answer = {"output": text} if ok else {"error": {"message": text}}
            return {"id": id, "tool": entry.tool, "ok": ok, "elapsedMs": elapsed, **answer}

        results = await run_in_parallel(run_one, list(enumerate(batch.calls)))
        text = dumps({"results": results}).decode()
        reply = self._answer_directly(call, text, started, reserved=sum(each.tokens for each in replies))
        has_news = len(replies) < len(results) or any(each.new for each in replies)
        return msgspec.structs.replace(reply, fits=reply.fits and all(each.fits for each in replies), new=has_news)

    def _share_quota(self, calls: Sequence[ToolCall]) -> dict[str, int]:
        """Share the limit on calls among the calls of a turn, in their order and not in the order in which they start."""
        left = self.session.settings.max_tool_calls_per_turn
        quota: dict[str, int] = {}
        for call in calls:
            listed: object = call.args.get("calls") if call.name == BATCH else None
            wanted = len(cast("list[object]", listed)) if isinstance(listed, list) else int(call.name in self.offers)
            quota[call.id] = min(wanted, left)
            left -= quota[call.id]
        return quota

    def _answer_directly(self, call: ToolCall, text: str, started: float, *, failed: bool = False, reserved: int = 0) -> Reply:
        fits = self.models.guard.afford(text, reserved)
        self._record(call, text, started, failed=failed)
        content = [{"type": "text", "text": text}]
        return Reply(text=text, content=content, is_error=failed, fits=fits, model=self.session.settings.model)

    def _record(self, call: ToolCall, text: str, started: float, *, failed: bool) -> None:
        self.answers[self.turn, call.id] = text
        offer = self.offers.get(call.name)
        self.session.note(
            ToolCalled(
                now_ms(),
                tool=call.name,
                server=offer.server if offer else "agent",
                kind=offer.kind if offer else "function",
                status="failed" if failed else "ok",
                latency=round((time.perf_counter() - started) * 1000),
                chars_in=chars_in(call.args),
                chars_out=len(text),
                call=call.id,
            )
        )


def _render_reply(reply: Reply) -> str:
    """The text of a reply, with a note for each block that is not text."""
    others = [block for block in reply.content if block_text(block) is None]
    kinds = [str(field(block, "mimeType") or field(block, "mime_type") or field(block, "type") or "block") for block in others]
    return "\n".join(filter(None, [reply.text, *map(wording.not_shown, kinds)]))
