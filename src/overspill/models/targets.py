"""Several models, asked in order, each more than once, until one answers."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import Any, TypeAlias

import anyio

from overspill.errors import OverspillError, SettingsError
from overspill.models.facts import is_large
from overspill.models.protocol import HasConnections, Model, ModelError, Request, Response, UnusableAnswer, Usage
from overspill.record.events import ModelCalled, name_type, now_ms
from overspill.text import encoding, tokens

PREVIEW_BYTES = 4096
FIRST_DELAY = 1.0
MAX_DELAY = 60.0
MODEL_BROKE = "{model} could not be asked ({error})."


Observer: TypeAlias = Callable[[ModelCalled], None]
"""Called after each request to each model, for accounting and the op tree."""

Check: TypeAlias = Callable[[Response], str]
"""Returns what is wrong with an answer, to follow the model's name ("answered nothing."); empty for a good answer."""


class Targets:
    """Several models that act as one. Its window is the smallest of theirs, since any of them may have to answer."""

    def __init__(
        self,
        models: Sequence[Model],
        *,
        retries: int = 2,
        op: str = "",
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
        self.is_large = all(is_large(model.name) for model in self.models)
        self._retries = retries
        self._op = op
        self._observe = observe
        self._sleep = sleep
        self._chance = chance

    @asynccontextmanager
    async def keep_connected(self) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for model in self.models:
                if isinstance(model, HasConnections):
                    await stack.enter_async_context(model.keep_connected())
            yield

    async def ask(self, request: Request, check: Check = lambda _: "") -> Response:
        """Ask until a model answers. An answer that does not pass the check is a failed attempt, but its usage still counts."""
        failed: list[ModelError] = []
        for model in self.models:
            try:
                return await self._ask_with_retries(model, request, check)
            except ModelError as error:
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        waits = [error.retry_after for error in failed if error.is_transient and error.retry_after is not None]
        raise ModelError(
            f"None of {len(failed)} models answered. {' '.join(str(error) for error in failed)}",
            is_transient=any(error.is_transient for error in failed),
            retry_after=min(waits, default=None),
        )

    async def _ask_with_retries(self, model: Model, request: Request, check: Check) -> Response:
        texts = [request.system, *(message.text for message in request.messages)]
        values = [*request.tools, *(dict(call.args) for message in request.messages for call in message.calls)]
        parts = [*texts, *map(json.dumps, values)]
        size = sum(len(encoding.encode(part)) for part in parts), sum(tokens.count(part, model.name).tokens for part in parts)
        for repeat in range(self._retries):
            try:
                return await self._attempt(model, request, check, size)
            except UnusableAnswer:
                continue
            except ModelError as error:
                if not error.is_transient:
                    raise
                # The pause doubles, has jitter to spread out parallel requests, and is never shorter than the provider asked for.
                doubled = FIRST_DELAY * 2**repeat * (0.5 + self._chance())
                await self._sleep(min(max(doubled, error.retry_after or 0.0), MAX_DELAY))
        return await self._attempt(model, request, check, size)

    async def _attempt(self, model: Model, request: Request, check: Check, size: tuple[int, int]) -> Response:
        """`size`: the bytes of the request, and its tokens as the model counts them."""
        started = perf_counter()

        def tell(error: Exception | None, usage: Usage = Usage(), preview: str = "") -> None:  # noqa: B008  # frozen
            if self._observe:
                called = ModelCalled(
                    now_ms(),
                    op=self._op,
                    model=model.name,
                    status="failed" if error else "ok",
                    latency=round((perf_counter() - started) * 1000),
                    messages=len(request.messages),
                    request_bytes=size[0],
                    estimated_tokens=size[1],
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cost=usage.cost,
                    preview=preview,
                    error=str(error or ""),
                    error_type=name_type((error and error.__cause__) or error),
                )
                self._observe(called)

        try:
            response = await model.ask(request)
        except OverspillError as error:
            if isinstance(error, ModelError):
                tell(error)
            raise
        except Exception as error:  # a host's model may raise anything, and one failure must not end the other requests
            broke = ModelError(MODEL_BROKE.format(model=model.name, error=str(error) or type(error).__name__), is_transient=True)
            broke.__cause__ = error
            tell(broke)
            raise broke from error
        wrong = check(response)
        unusable = UnusableAnswer(f"{model.name} {wrong}", is_transient=True) if wrong else None
        preview = encoding.encode(response.text)[:PREVIEW_BYTES]
        tell(unusable, response.usage, encoding.decode(preview[: encoding.complete_length(preview)]))
        if unusable:
            raise unusable
        return response
