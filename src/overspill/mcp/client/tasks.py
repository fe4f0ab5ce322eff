"""Follow a task that a server made of a tool call, until there is a result: the extension of the protocol of 2026-07-28.

The server sets the pace: it is polled at most once in each interval, and may restart between two polls.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from overspill.calls.job import current
from overspill.errors import ServerError
from overspill.mcp.client.handshake import TASKS, Raw, as_mapping
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import dumps

_MIN_INTERVAL_MS, _MAX_INTERVAL_MS = 100, 60_000
_FIRST_LOOK = 0.25  # seconds until the first poll, because many tasks are short
_FIRST_INTERVAL, _GROWTH, _MAX_GROWN_INTERVAL = 1.0, 1.5, 10.0  # for a server that names no interval
_JITTER = 0.1  # of the interval, so that many tasks are not polled at the same time
_MAX_REFUSALS = 5  # in a row, after which a task counts as lost
_MAX_AWAY_SECONDS = 600.0
_CANCEL_SECONDS = 0.3  # to tell the server: a cancelled call has 0.4 s to clean up
_MAX_MESSAGE_CHARS = 200
_NO_TASKS = "no longer offers tasks, so the result of this one is lost"
_LOST = {
    mcp_types.INVALID_PARAMS: "no longer has the task",
    mcp_types.METHOD_NOT_FOUND: _NO_TASKS,
    mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY: _NO_TASKS,
}

Request: TypeAlias = Callable[[str, Raw], Awaitable[Raw]]
Answer: TypeAlias = Callable[[Raw], Awaitable[Raw]]
"""Gets a server's questions by key, and returns the answers by the same keys."""


def is_task(result: Raw) -> bool:
    return result.get("resultType") == "task"


def knows_tasks(capabilities: Raw) -> bool:
    return TASKS in as_mapping(capabilities.get("extensions"))


class TaskFollower(Struct):
    """One task of the server `server`, which `request` asks. Without `answer`, requests for input fail."""

    server: str
    id: str
    request: Request
    answer: Answer | None
    interval: float = _FIRST_INTERVAL

    async def follow(self) -> Raw:
        """Return the result of the call. Raises MCPError if the call failed, ServerError if the task was cancelled or is lost.

        If the caller is cancelled, so is the task, unless only the session ends: then a later one may follow it.
        """
        job, pause, given = current.get(), _FIRST_LOOK, dict[str, int]()
        if job is not None:
            job.note_task(self.id)
        try:
            while True:
                await anyio.sleep(pause * (1 + random.random() * _JITTER))  # noqa: S311 - no secret
                task = await self._ask("tasks/get")
                if task.get("taskId", self.id) != self.id:
                    raise ServerError(f"The server {self.server} answered about another task, so the result of this one is lost.")
                pause = self._next_interval(task.get("pollIntervalMs"))
                if job is not None and isinstance(message := task.get("statusMessage"), str):
                    job.progress = message[:_MAX_MESSAGE_CHARS]
                if (result := self._read_end(task)) is not None:
                    return result
                if task.get("status") == "input_required":
                    await self._give_input(task.get("inputRequests"), given)
        except anyio.get_cancelled_exc_class():
            if job is None or job.is_unwanted:
                await self._cancel()
            raise

    def _next_interval(self, milliseconds: object) -> float:
        if isinstance(milliseconds, int | float):
            self.interval = min(_MAX_INTERVAL_MS, max(_MIN_INTERVAL_MS, milliseconds)) / 1000
        else:
            self.interval = min(self.interval * _GROWTH, _MAX_GROWN_INTERVAL)
        return self.interval

    def _read_end(self, task: Raw) -> Raw | None:
        """Return the result of a task that has ended; None while it runs. Raises like `follow`."""
        match task.get("status"):
            case "completed" if isinstance(task.get("result"), dict) and not is_task(task["result"]):
                return task["result"]
            case "failed":
                error = as_mapping(task.get("error"))
                code = error["code"] if isinstance(error.get("code"), int) else mcp_types.INTERNAL_ERROR
                message = str(error.get("message") or task.get("statusMessage") or "The task failed.")
                raise MCPError(code, message, cast("Any", error.get("data")))
            case "cancelled":
                why = quote_line(str(task.get("statusMessage") or "")).rstrip(".")
                raise ServerError(f"The server {self.server} cancelled the task{f': {why}' if why else ''}.")
            case "working" | "input_required":
                return None
            case status:
                raise ServerError(
                    f"The server {self.server} gave the task the status {quote_line(str(status))} without a result, "
                    "so it is lost. The tool may have done its work."
                )

    async def _ask(self, method: str, **more: Raw) -> Raw:
        """Ask the server about the task, and try again for a while: a silent server may come back, and a busy one may refuse."""
        job, tries, refusals, away_since = current.get(), 0, 0, anyio.current_time()
        while True:
            try:
                return await self.request(method, {"taskId": self.id, **more})
            except MCPError as refusal:
                refusals += 1
                why = quote_line(refusal.message).rstrip(".")
                if refusal.code in _LOST or refusals >= _MAX_REFUSALS:
                    lost = _LOST.get(refusal.code, "does not say how the task is")
                    raise ServerError(f"The server {self.server} {lost}: {why}. Call the tool again.") from None
            except ServerError as problem:
                if anyio.current_time() - away_since > _MAX_AWAY_SECONDS:
                    raise ServerError(f"{problem} It was away for too long, and its task with it.") from None
                if job is not None:
                    job.progress = str(problem)  # the model may have to ask for a login
            tries += 1
            await anyio.sleep(max(self.interval, min(tries, _MAX_GROWN_INTERVAL)))

    async def _give_input(self, wanted: object, given: dict[str, int]) -> None:
        """Answer each question once, even if the server repeats it. A task that gets no answer is cancelled."""
        asked = as_mapping(wanted)
        marks = {key: hash(dumps(question)) for key, question in asked.items()}
        new = {key: asked[key] for key in asked if key not in given}
        is_odd = not isinstance(wanted, dict | None) or any(given.get(key, mark) != mark for key, mark in marks.items())
        given.update(marks)
        try:
            if is_odd or not given or not all(isinstance(as_mapping(each).get("method"), str) for each in new.values()):
                raise ServerError("it is not clear what the server asks")
            if self.answer is None:
                raise ServerError("nobody can answer here")
            answers = await self.answer(new)
        except (MCPError, ServerError) as problem:
            await self._cancel()
            why = quote_line(problem.message if isinstance(problem, MCPError) else str(problem)).rstrip(".")
            raise ServerError(
                f"The server {self.server} asked for input and got none, so its task was cancelled: {why}."
            ) from None
        if new:
            await self._ask("tasks/update", inputResponses=answers)

    async def _cancel(self) -> None:
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(MCPError, ServerError):  # it may be gone
            await self.request("tasks/cancel", {"taskId": self.id})
