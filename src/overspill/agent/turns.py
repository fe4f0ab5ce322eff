"""The turn loop: send a request with a notice, run the calls, repeat until there is a report or no turn is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import anyio
from msgspec import Struct
from msgspec.structs import replace

from overspill import handles
from overspill.agent import internal, wording
from overspill.agent.file import Agent
from overspill.agent.progress import TurnStarted
from overspill.agent.report import Report
from overspill.agent.router import ToolRouter
from overspill.errors import BadRequest
from overspill.models.conversation import take_step
from overspill.models.protocol import Message, Request
from overspill.record.events import TurnOpened, now_ms
from overspill.types import ToolCall
from overspill.wording.replies import tool_failure

Status: TypeAlias = Literal["reported", "unreported", "failed", "aborted"]
_FINAL_ATTEMPTS = 3


class Outcome(Struct, frozen=True):
    status: Status
    turns: int = 0
    report: Report | None = None
    why: str = ""
    """For people: what ended the run instead of a report."""
    early: str = ""
    """Why the agent had to report in its last turn."""
    running: tuple[str, ...] = ()
    """The tools that were still running when the agent reported."""


class Turns:
    """One conversation. Notices are never part of its `messages`."""

    def __init__(self, agent: Agent, router: ToolRouter, control: RunControl) -> None:
        self.messages: list[Message] = []
        self.turn = 0
        output = agent.file.keys.output
        self._system = wording.system_prompt(agent.file.prompt, router.models.reports.nonce, output)
        self._report = internal.final_report(output.format, output.json_schema)
        self._router, self._session, self._models, self._control = router, router.session, router.models, control
        self._remark = ""
        self._handed_over: set[str] = set()

    async def run(self, question: str) -> Outcome:
        self.messages.append(Message("user", question))
        max_turns = self._session.settings.max_turns
        final = ""
        for self.turn in range(1, max_turns + 1):
            if self._control.is_stopping:
                await self._session.stop()
            if self._control.is_stopping or self.turn == max_turns:
                # Show the model all unread outputs now, because it can no longer fetch them.
                for id, tool in self._find_unread().items():
                    self._handed_over.add(id)
                    self.messages.append(Message("user", wording.late_output(tool, id, await self._read_late_output(id))))
            request, final = self._open_request(max_turns)
            for _ in range(_FINAL_ATTEMPTS if final else 1):
                await self._step(request, max_turns, final)
                if (report := self._models.reports.accepted) is not None:
                    return Outcome("reported", self.turn, report, early=final, running=self._list_running())
                request = replace(request, messages=tuple(self.messages))
            if final:
                break
        return Outcome(
            "unreported", self.turn, why="The model gave no final report, even when asked for nothing else.", early=final
        )

    def _open_request(self, max_turns: int) -> tuple[Request, str]:
        """Return the request of this turn, without its notice, and why the turn is final, if it is."""
        final = wording.STOPPED if self._control.is_stopping else wording.LAST_TURN if self.turn == max_turns else ""
        request = self._request(final)
        self._models.guard.take(request)
        if self.turn == 1 and self._models.guard.is_full:
            raise BadRequest(
                f"The prompt, the tools and the question fill the whole context window of {self._models.guard.window} tokens. "
                "Shorten the question, offer fewer tools, or use a model with a larger window."
            )
        if not final and self._models.guard.is_full:
            final = wording.CONTEXT_FULL
            request = self._request(final)
        self._session.note(TurnOpened(now_ms(), self.turn, max_turns, final))
        self._router.observe(TurnStarted(self._router.name, self.turn, max_turns, self._models.guard.percent, final))
        return request, final

    def _request(self, final: str) -> Request:
        request = self._build_request(final, alone=bool(final) and self._session.settings.wording.reports_alone)
        if final and not self._models.guard.has_room_for(request):
            return self._build_request(final, alone=True)  # a broken prompt cache is better than no report
        return request

    def _build_request(self, final: str, *, alone: bool) -> Request:
        settings = self._session.settings
        return Request(
            self._system,
            tuple(self.messages),
            self._router.open_turn(self.turn, self._report, final=bool(final), alone=alone),
            must_call=internal.REPORT if final else "",
            max_output_tokens=self._models.guard.output,
            temperature=settings.temperature,
            top_p=settings.top_p,
        )

    async def _step(self, request: Request, max_turns: int, final: str) -> None:
        percent = self._models.guard.percent
        if final:
            unread = [wording.describe_job(tool, id) for id, tool in self._find_unread().items()]
            notice = wording.final_notice(self.turn, max_turns, percent, final, self._remark, self._list_running(), unread)
        else:
            status, options = self._session.notice(), self._session.options()
            notice = wording.notice(self.turn, max_turns, percent, status, options, self._remark)
        # If a model has no tools, or answers in plain text even after a reminder of how to report, that is its report.
        self._models.plain = bool(final) or len(request.tools) == 1 or self._remark == wording.NOT_WRAPPED
        asked = replace(request, messages=(*request.messages, Message("user", notice)), has_notice=True)
        taken = await take_step(self._models, asked, self._run_calls, self._router.find_problem)
        response, answers = taken.response, taken.messages[1:]
        for call, answer in zip(response.calls, answers, strict=True):
            self._router.record_refused(call, answer.text)
        self._remark = "" if response.calls else wording.NOT_WRAPPED if response.text.strip() else wording.NO_MOVE
        if response.calls or response.text.strip():  # some providers refuse an empty message
            self.messages.extend(taken.messages)

    async def _run_calls(self, calls: Sequence[ToolCall]) -> Sequence[Message]:
        said = Message("assistant", self._models.said)
        return await self._router.run_calls(calls, self._models.model, [*self.messages, said])

    def _find_unread(self) -> dict[str, str]:
        """Return, by job id, the tools that have finished in the background and whose outputs the model has not read."""
        known = {job.id for job in self._session.running()} | self._handed_over
        jobs, retrieved = self._router.background.items(), self._session.counters.retrieved
        return {id: tool for id, tool in jobs if id not in known and handles.parse(id)[1] not in retrieved}

    def _list_running(self) -> tuple[str, ...]:
        return tuple(wording.describe_job(job.tool, job.id) for job in self._session.running())

    async def _read_late_output(self, id: str) -> str:
        """Return the output, or its beginning and what is missing if it is too large, or the reason if the tool failed."""
        whole = await self._session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        if not whole.is_error or whole.text.startswith(tool_failure("")):
            return whole.text
        part = await self._session.invoke("get_tool_output", {"id": id, "mode": "slice", "slice": {"start": 0}})
        return whole.text if part.is_error else part.text


class RunControl:
    """Shared by an agent and the agents it calls."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Encloses everything that the run does."""
        self._stop = anyio.Event()

    def stop(self) -> None:
        """Start no new calls, let running ones finish, then ask for the final report."""
        self._stop.set()

    def abort(self) -> None:
        """Cancel everything now."""
        self.scope.cancel()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def wait_for_stop(self) -> None:
        await self._stop.wait()
