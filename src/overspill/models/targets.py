"""Several models in order, each tried more than once: the first that answers is the one that answered."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import anyio
from msgspec import Struct

from overspill import text
from overspill.errors import SettingsError
from overspill.models.base import Model, ModelError, Request, Response, Usage

PREVIEW_BYTES = 4096
FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0


class Attempt(Struct, frozen=True, kw_only=True):
    """One request to one model, for accounting and the op tree: sizes and a preview, never the request itself."""

    model: str
    messages: int
    request_bytes: int
    latency_ms: int
    error: str = ""
    """Empty when it answered."""
    usage: Usage = Usage()
    preview: str = ""
    """The beginning of the answer's text, at most 4,096 bytes."""

    @property
    def ok(self) -> bool:
        return not self.error


Observer: TypeAlias = Callable[[Attempt], None]


class Targets:
    """A model made of models. Its window is the smallest of theirs, since any of them may have to answer."""

    def __init__(
        self,
        models: Sequence[Model],
        *,
        retries: int = 2,
        observe: Observer | None = None,
        sleep: Callable[[float], Awaitable[Any]] = anyio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not models:
            raise SettingsError("There is no model to ask. Name at least one target, like anthropic/claude-sonnet-4-5.")
        self.models = tuple(models)
        self.name = self.models[0].name
        self.context_window = min(model.context_window for model in self.models)
        self.max_output_tokens = min(model.max_output_tokens for model in self.models)
        self._retries = retries
        self._observe = observe
        self._sleep = sleep
        self._chance = chance

    async def ask(self, request: Request) -> Response:
        size = _size(request)
        failed: list[ModelError] = []
        for model in self.models:
            try:
                return await self._persist(model, request, size)
            except ModelError as error:
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        waits = [error.retry_after for error in failed if error.passing and error.retry_after is not None]
        raise ModelError(
            f"None of {len(failed)} models answered. {' '.join(str(error) for error in failed)}",
            passing=any(error.passing for error in failed),
            retry_after=min(waits, default=None),
        )

    async def _persist(self, model: Model, request: Request, size: int) -> Response:
        for repeat in range(self._retries):
            try:
                return await self._attempt(model, request, size)
            except ModelError as error:
                if not error.passing:
                    raise
                await self._sleep(self._delay(repeat, error.retry_after))
        return await self._attempt(model, request, size)

    async def _attempt(self, model: Model, request: Request, size: int) -> Response:
        begun = perf_counter()
        try:
            response = await model.ask(request)
        except ModelError as error:
            self._tell(model, request, size, begun, error=str(error))
            raise
        self._tell(model, request, size, begun, usage=response.usage, preview=_preview(response.text))
        return response

    def _tell(self, model: Model, request: Request, size: int, begun: float, **outcome: Any) -> None:
        if self._observe:
            latency = round((perf_counter() - begun) * 1000)
            messages = len(request.messages)
            self._observe(Attempt(model=model.name, messages=messages, request_bytes=size, latency_ms=latency, **outcome))

    def _delay(self, repeat: int, asked: float | None) -> float:
        """Doubling, spread so that parallel requests do not come back together, never sooner than the provider asked."""
        doubled = FIRST_DELAY * 2**repeat * (0.5 + self._chance())
        return min(max(doubled, asked or 0.0), LONGEST_DELAY)


def _size(request: Request) -> int:
    texts = [request.system, *(message.text for message in request.messages)]
    values = [*request.tools, *(dict(call.args) for message in request.messages for call in message.calls)]
    return sum(len(text.encode(part)) for part in texts) + sum(len(json.dumps(value)) for value in values)


def _preview(answer: str) -> str:
    data = text.encode(answer)[:PREVIEW_BYTES]
    return text.decode(data[: text.whole(data)])
