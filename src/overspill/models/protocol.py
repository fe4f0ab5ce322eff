"""What every model looks like: text and tool calls in; text, tool calls and usage out."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from overspill.errors import OverspillError
from overspill.types import ToolCall

Role: TypeAlias = Literal["user", "assistant", "tool"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"]


class Message(Struct, frozen=True):
    """One step of a conversation. A tool's answer names the call it answers."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False


class Request(Struct, frozen=True):
    system: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    """Definitions in the "jsonschema" format: name, description, parameters."""
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    must_call: str = ""
    """The one tool that the model must call. If a provider cannot require that, `tool_choice` applies."""
    has_notice: bool = False
    """Whether the last message is for this request only. Prompt caches end before it."""


class Usage(Struct, frozen=True):
    """The provider's counts; 0 if it did not report them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class Response(Struct, frozen=True):
    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    """The target that answered, `provider/model`."""


class Model(Protocol):
    @property
    def name(self) -> str:
        """`provider/model`."""
        ...

    @property
    def context_window(self) -> int: ...
    @property
    def max_output_tokens(self) -> int: ...
    async def ask(self, request: Request) -> Response:
        """One request, no retries. Raises ModelError."""
        ...


@runtime_checkable
class HasConnections(Protocol):
    """A model that is reached through connections."""

    def keep_connected(self) -> AbstractAsyncContextManager[None]:
        """Keeps the connections open between requests. You may enter it more than once."""
        ...


class ModelError(OverspillError):
    """A model did not answer. If it `is_transient`, the same request may work later, after `retry_after` seconds if given."""

    def __init__(self, text: str, *, is_transient: bool, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.is_transient = is_transient
        self.retry_after = retry_after


class UnusableAnswer(ModelError):
    """A model's answer was not usable. It may do better if asked again immediately."""
