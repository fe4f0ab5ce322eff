"""Stand-ins for tests: models that answer from a script, and tools that end when you let them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec
from msgspec import Struct

from overspill.errors import OverspillError
from overspill.models.protocol import Model, Request, Response
from overspill.types import ToolCall

ScriptedReply: TypeAlias = str | Response | ToolCall | Sequence[ToolCall] | Exception
"""A string, a whole response, one or more tool calls, or an exception to raise."""


class ScriptExhausted(OverspillError):
    """The script of a test does not cover what happened."""


class ScriptedModel:
    """Answers from a list, in order, or by a function of the request, and remembers every request.

    It waits for `gate`, if given, and then `latency` seconds before each answer.
    """

    def __init__(
        self,
        replies: Sequence[ScriptedReply] | Callable[[Request], ScriptedReply] = (),
        *,
        name: str = "test/scripted",
        context_window: int = 128_000,
        max_output_tokens: int = 4_096,
        latency: float = 0.0,
        gate: anyio.Event | None = None,
    ) -> None:
        self.name = name
        self.context_window = context_window
        self.max_output_tokens = max_output_tokens
        self.requests: list[Request] = []
        self._script = replies if callable(replies) else self._in_order(list(replies))
        self._latency = latency
        self._gate = gate

    async def ask(self, request: Request) -> Response:
        self.requests.append(request)
        # Choose before waiting, so that parallel requests get their replies in the order they were made.
        reply = self._script(request)
        if self._gate:
            await self._gate.wait()
        await anyio.sleep(self._latency)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Response):
            return reply
        if isinstance(reply, str):
            return Response(reply, model=self.name)
        return Response("", (reply,) if isinstance(reply, ToolCall) else tuple(reply), model=self.name)

    def _in_order(self, replies: list[ScriptedReply]) -> Callable[[Request], ScriptedReply]:
        def next_reply(request: Request) -> ScriptedReply:
            if len(self.requests) > len(replies):
                asked = request.messages[-1].text if request.messages else request.system
                raise ScriptExhausted(
                    f"{self.name} has {len(replies)} scripted replies and was asked {len(self.requests)} times; "
                    f"the last request ends with {asked[-200:]!r}."
                )
            return replies[len(self.requests) - 1]

        return next_reply


class _Recorded(Struct, frozen=True):
    key: str
    response: Response


class _Header(Struct, frozen=True):
    name: str
    context_window: int
    max_output_tokens: int


class RecordingModel:
    """Asks another model and records its answers, one JSON line each. Stores only hashes of the requests."""

    def __init__(self, inner: Model, path: Path) -> None:
        self.name = inner.name
        self.context_window = inner.context_window
        self.max_output_tokens = inner.max_output_tokens
        self._inner = inner
        self._path = path
        path.write_bytes(msgspec.json.encode(_Header(self.name, self.context_window, self.max_output_tokens)) + b"\n")

    async def ask(self, request: Request) -> Response:
        response = await self._inner.ask(request)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(_Recorded(_hash_request(request), response)) + b"\n")
        return response


class ReplayingModel:
    """Gives the recorded answer to the same request. Several answers come in order, and the last one repeats."""

    def __init__(self, path: Path) -> None:
        header, *lines = path.read_bytes().splitlines()
        described = msgspec.json.decode(header, type=_Header)
        self.name = described.name
        self.context_window = described.context_window
        self.max_output_tokens = described.max_output_tokens
        self._path = path
        self._answers: dict[str, list[Response]] = {}
        for line in lines:
            recorded = msgspec.json.decode(line, type=_Recorded)
            self._answers.setdefault(recorded.key, []).append(recorded.response)

    async def ask(self, request: Request) -> Response:
        answers = self._answers.get(_hash_request(request))
        if answers is None:
            raise ScriptExhausted(
                f"{self._path.name} holds no answer to this request: it differs from what was recorded. Record it again."
            )
        return answers.pop(0) if len(answers) > 1 else answers[0]


def _hash_request(request: Request) -> str:
    """A hash of the request, with the ids of calls replaced by their positions, since some ids change with every run."""
    ids = [call.id for message in request.messages for call in message.calls]
    plain = msgspec.to_builtins(request)
    for message in plain["messages"]:
        message["call_id"] = _number_call(message["call_id"], ids)
        for call in message["calls"]:
            call["id"] = _number_call(call["id"], ids)
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


def _number_call(call_id: str, ids: list[str]) -> str:
    return str(ids.index(call_id)) if call_id in ids else call_id


class SlowTool:
    """A tool that reports when it has begun and ends when you let it: as a coroutine, in a thread, or in pieces.

    `await tool(…)`, `tool.blocking(…)` and `tool.streaming(…)` all return or raise `result` once you call `release()`.
    """

    def __init__(self, result: Any = "done") -> None:
        self.result = result
        self.calls: list[dict[str, Any]] = []
        self.cancelled = 0
        self._begun = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    async def begun(self) -> None:
        await _wait_for(self._begun)

    async def __call__(self, **args: Any) -> Any:
        self._begin(args)
        try:
            await _wait_for(self._released)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return self._end()

    def blocking(self, **args: Any) -> Any:
        self._begin(args)
        self._released.wait()
        return self._end()

    async def streaming(self, **args: Any) -> AsyncIterator[Any]:
        """Yields the first piece of the result immediately, and the others after the release."""
        self._begin(args)
        first, *others = self.result
        yield first
        await _wait_for(self._released)
        for piece in others:
            yield piece

    def _begin(self, args: dict[str, Any]) -> None:
        self.calls.append(args)
        self._begun.set()

    def _end(self) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def _wait_for(event: threading.Event) -> None:
    # A threading event works in any thread and any loop, but can only be polled.
    while not event.is_set():  # noqa: ASYNC110
        await anyio.sleep(0.001)
