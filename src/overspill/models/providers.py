"""Real providers behind the protocol, through pydantic-ai's direct requests: no agent, no hidden retries, no tracing."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module

import anyio
from pydantic_ai import exceptions as failures
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from overspill.models.endpoints import KINDS, Endpoint
from overspill.models.facts import ModelFacts
from overspill.models.protocol import ModelError, Request, Response, ToolChoice, Usage
from overspill.models.written import UNREADABLE
from overspill.text.encoding import clean
from overspill.text.lenient_json import clean_value
from overspill.types import ToolCall

_TRANSIENT_STATUS = (408, 409, 425)


class ProviderModel:
    """One model at one endpoint.

    Connections last as long as requests are under way; `keep_connected` keeps them open between requests.
    """

    def __init__(self, target: str, endpoint: Endpoint, facts: ModelFacts) -> None:
        provider, _, name = target.partition("/")
        traits = KINDS[endpoint.kind]
        client = import_module(f"overspill.models.clients.{traits.client}")
        self.name = target
        self.context_window = facts.context_window
        self.max_output_tokens = facts.max_output_tokens
        self._endpoint = endpoint
        self._has_known_prices = traits.has_known_prices
        self._takes_cache_marks = traits.takes_cache_marks
        self._model = client.connect(provider, name, endpoint)

    @asynccontextmanager
    async def keep_connected(self) -> AsyncGenerator[None]:
        await self._model.__aenter__()
        try:
            yield
        finally:
            # A cancelled request must close its connection too.
            with anyio.CancelScope(shield=True):
                await self._model.__aexit__(None, None, None)

    async def ask(self, request: Request) -> Response:
        try:
            async with self.keep_connected():
                try:
                    response = await self._send(request, [request.must_call] if request.must_call else request.tool_choice)
                except (failures.UserError, failures.ModelRequestRejectedError):
                    if not request.must_call:
                        raise
                    response = await self._send(request, request.tool_choice)  # not every model can be made to call a tool
                refusal = (response.provider_details or {}).get("refusal")
                text = response.text or (refusal if isinstance(refusal, str) else "")
                calls: list[ToolCall] = []
                for part in response.tool_calls:
                    try:
                        args = part.args_as_dict(raise_if_invalid=True)
                    except (ValueError, AssertionError):
                        args = {UNREADABLE: part.args}
                    calls.append(ToolCall(part.tool_call_id, part.tool_name, args))
                usage = Usage(response.usage.input_tokens, response.usage.output_tokens, self._read_cost(response))
                return Response(text, tuple(calls), usage, self.name)
        except Exception as error:  # a client library may raise anything: the model did not answer
            # The library's error quotes the server, which may quote the request or the key, so drop it.
            raise self._describe_failure(error) from None

    async def _send(self, request: Request, choice: ToolChoice | list[str]) -> ModelResponse:
        messages, settings = _convert_messages(request, mark=self._takes_cache_marks), self._build_settings(request)
        if request.tools:
            settings["tool_choice"] = choice
        tools = [
            ToolDefinition(
                name=tool["name"],
                parameters_json_schema=tool["parameters"],
                description=tool.get("description"),
                strict=False,  # otherwise the schema would be rewritten
            )
            for tool in request.tools
        ]
        parameters = ModelRequestParameters(function_tools=tools)
        return await model_request(
            self._model, messages, model_settings=settings, model_request_parameters=parameters, instrument=False
        )

    def _build_settings(self, request: Request) -> ModelSettings:
        settings = ModelSettings(timeout=self._endpoint.timeout, request_timeout=self._endpoint.timeout)
        if request.max_output_tokens is not None:
            settings["max_tokens"] = min(request.max_output_tokens, self.max_output_tokens)
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        if request.top_p is not None:
            settings["top_p"] = request.top_p
        if self._endpoint.headers:
            settings["extra_headers"] = dict(self._endpoint.headers)
        return settings

    def _read_cost(self, response: ModelResponse) -> float | None:
        if not self._has_known_prices:
            return None
        try:
            return float(response.cost().total_price)
        except (LookupError, ValueError, AssertionError):
            return None

    def _describe_failure(self, error: Exception) -> ModelError:
        _, what, is_transient = next((failure for failure in _FAILURES if isinstance(error, failure[0])), _OTHER)
        if isinstance(error, failures.ModelHTTPError):
            is_transient = is_transient or error.status_code in _TRANSIENT_STATUS or error.status_code >= 500
        codes = ", ".join(_find_safe_codes(error))
        return ModelError(
            f"{self.name}: {what.format(address=self._endpoint.address, timeout=self._endpoint.timeout)}"
            f"{f' ({codes})' if codes else ''}.",
            is_transient=is_transient,
            retry_after=error.retry_after if isinstance(error, failures.ModelAPIError) else None,
        )


_FAILURES: tuple[tuple[type[Exception], str, bool], ...] = (
    (failures.ModelRateLimitError, "the rate limit is reached", True),
    (failures.ModelQuotaExceededError, "the account's quota or credit is used up", False),
    (failures.ModelOverloadedError, "the provider is overloaded", True),
    (failures.ModelUnavailableError, "the provider is not available", True),
    (failures.ModelServerError, "the provider failed", True),
    (failures.ModelRequestTimeout, "no answer within {timeout:g} s", True),
    (failures.ModelTimeoutError, "no answer within {timeout:g} s", True),
    (failures.ModelConnectionError, "no connection to {address}", True),
    (failures.ModelContextWindowExceededError, "the request is longer than the model's context window", False),
    (failures.ModelAuthenticationError, "the API key was not accepted", False),
    (failures.ModelNotFoundError, "{address} knows no such model", False),
    (failures.ModelRequestRejectedError, "the request was rejected", False),
    (failures.UserError, "this model does not take such a request", False),
    (failures.ContentFilterError, "the answer was withheld by a content filter", False),
    (failures.ModelHTTPError, "the provider refused", False),
    # A brief failure of a gateway looks like this, and so does a base URL that leads to a web page. Trying again is cheap.
    (failures.ModelAPIError, "the answer could not be read", True),
    (failures.UnexpectedModelBehavior, "the answer could not be read", True),
)
_OTHER = (Exception, "the answer could not be read", True)


def _find_safe_codes(error: Exception) -> list[str]:
    """The parts of a provider's error that are safe to repeat: the status, and a code that cannot be a key or a sentence."""
    if not isinstance(error, failures.ModelAPIError | failures.UnexpectedModelBehavior):
        return [type(error).__name__]
    code = getattr(error, "provider_error_code", None)
    status = [f"HTTP {error.status_code}"] if isinstance(error, failures.ModelHTTPError) else []
    return [*status, *([code] if isinstance(code, str) and re.fullmatch("[A-Za-z_]{1,40}", code) else [])]


def _convert_messages(request: Request, *, mark: bool) -> list[ModelMessage]:
    """`mark` is whether to ask the provider to cache everything before a notice."""
    names = {call.id: call.name for message in request.messages for call in message.calls}
    system = clean(request.system) or None
    converted: list[ModelMessage] = []
    for message in request.messages:
        if message.role == "assistant":
            calls = [ToolCallPart(call.name, clean_value(dict(call.args)), call.id) for call in message.calls]
            converted.append(ModelResponse([*([TextPart(clean(message.text))] if message.text else []), *calls]))
            continue
        part: UserPromptPart | ToolReturnPart = UserPromptPart(clean(message.text))
        if message.role == "tool":
            outcome = "failed" if message.is_error else "success"
            part = ToolReturnPart(names.get(message.call_id, ""), clean(message.text), message.call_id, outcome=outcome)
        if mark and request.has_notice and message is request.messages[-1] and converted:
            part = UserPromptPart([CachePoint(), clean(message.text)])
        # Most providers expect the answers to the calls of one step, and the user's next words, in one message.
        if converted and isinstance(previous := converted[-1], ModelRequest):
            converted[-1] = ModelRequest([*previous.parts, part], instructions=system)
        else:
            converted.append(ModelRequest([part], instructions=system))
    return converted
