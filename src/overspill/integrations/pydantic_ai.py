"""Pydantic AI: `Agent(…, capabilities=[Overspill()])`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Unpack

from anyio import to_thread

from overspill.gate.collect import text_block
from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said, compact
from overspill.integrations.options import AdapterOptions, MissingFramework, Options
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from overspill.text.arguments import read_arguments
from overspill.types import Output, Reply

try:
    from pydantic_ai import FunctionToolset, RunContext, Tool, ToolDefinition, ToolReturn
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolRetryError
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
        is_multi_modal_content,
    )
except ImportError as error:
    raise MissingFramework("pydantic_ai", "pydantic-ai-slim>=2.66") from error


_MAX_MESSAGES = 20  # looked at to find out what the conversation is about


class Overspill(AbstractCapability[Any]):
    """One object serves all users: each conversation has its own session.

    `settings`: as for `Session`. `session`: a session to share, or its name. `budget`: the model's window,
    by default what Pydantic AI knows of it. `compact`: once this share of it is full, old results are replaced by their names.
    `tool_search`: the model searches for the agent's tools, if the setting `toolSearch` says so.
    """

    def __init__(self, **options: Unpack[AdapterOptions]) -> None:
        self._sessions = Sessions(Options("pydantic-ai", **options))
        ours = self._sessions.definitions
        self._toolset = FunctionToolset(
            [Tool.from_schema(refuse, tool["name"], tool["description"], tool["parameters"]) for tool in ours]
        )
        self._run: AgentRun | None = None

    def get_toolset(self) -> Any:
        return self._toolset

    async def for_run(self, ctx: RunContext[Any]) -> Overspill:
        ours = copy(self)
        ours._run = self._sessions.begin_run(ctx.conversation_id or "")
        return ours

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        try:
            return await handler()
        finally:
            await self._own_run.close()

    async def prepare_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        run = self._own_run
        run.begin_request(request_context.model.context_window)
        lines = await compact(run, partial(read_conversation, request_context.messages))
        if lines:
            request_context = replace(request_context, messages=replace_results(request_context.messages, lines))
        notice, request_context = run.notice(), self._hide(request_context)
        return replace(request_context, messages=_add_notice(request_context.messages, notice)) if notice else request_context

    def _hide(self, request: Any) -> Any:
        """Return the request without the tools that the model searches for, or without the search if it is not used."""
        search, given = self._own_run.searching, request.model_request_parameters
        # Only the model itself can call a tool that waits for approval or runs elsewhere.
        schema = attrgetter("parameters_json_schema")
        shown = search.choose(given.function_tools, schema, may_hide=lambda tool: tool.kind == "function")
        return replace(request, model_request_parameters=replace(given, function_tools=shown)) if search.is_on else request

    async def after_model_request(self, ctx: RunContext[Any], *, request_context: Any, response: ModelResponse) -> ModelResponse:
        self._own_run.settle(response.usage.total_tokens)
        return response

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        shown: list[ToolDefinition] = []
        for tool in tool_defs:
            own = tool.parameters_json_schema
            schema = self._sessions.asking.widen(tool.name, own, strict=tool.strict)
            shown.append(tool if schema is own else replace(tool, parameters_json_schema=dict(schema)))
        return shown

    async def before_tool_validate(self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any) -> Any:
        """Take off what the model is looking for, which is not an argument of the tool."""
        given = read_arguments(args)
        own, said = self._sessions.asking.take_off(call.tool_name, given if isinstance(given, dict) else {})
        return own if said else args

    async def wrap_tool_execute(self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        search = self._own_run.searching
        found = search.read(call.tool_name, args)
        if isinstance(found, str):
            return found
        if found is not None and ctx.tool_manager is not None:
            try:  # this calls our method again, for the tool itself
                return await ctx.tool_manager.handle_call(ToolCallPart(*found, tool_call_id=call.tool_call_id))
            except ToolRetryError as problem:
                if not (why := await to_thread.run_sync(search.explain, *found, _show(problem.tool_retry))):
                    raise
                raise ToolRetryError(replace(problem.tool_retry, content=why)) from problem

        async def tool(**given: Any) -> Any:
            return _to_output(await handler(given))

        args = self._sessions.asking.put_back(call.tool_name, args, call.args_as_dict())
        said = partial(_read_messages, ctx.messages)
        return _to_result(await self._own_run.call(call.tool_name, args, tool, id=call.tool_call_id, messages=said))

    @property
    def _own_run(self) -> AgentRun:
        assert self._run is not None, "Pydantic AI calls `for_run` before anything else"
        return self._run


def _show(retry: Any) -> str:
    return retry.model_response_str() if isinstance(retry, ToolReturnPart) else str(retry.content)


def _add_notice(messages: Sequence[ModelMessage], notice: str) -> list[ModelMessage]:
    """Add a notice after the results of the last request, in copies, so that it is not stored."""
    *earlier, last = messages
    if isinstance(last, ModelRequest):
        return [*earlier, replace(last, parts=[*last.parts, UserPromptPart(notice)])]
    return [*messages, ModelRequest([UserPromptPart(notice)])]


def _read_messages(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for message in messages[-_MAX_MESSAGES:]:
        for part in message.parts:
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                said.append({"role": "user", "content": part.content})
            elif isinstance(part, TextPart):
                said.append({"role": "assistant", "content": part.content})
    return said


def _to_output(result: Any) -> Output:
    """Read a tool's result. Images and other files stay in their places. All else becomes the text that the model would see."""
    value = result.return_value if isinstance(result, ToolReturn) else result
    items = value if isinstance(value, list | tuple) and any(map(is_multi_modal_content, value)) else [value]
    blocks: list[dict[str, Any]] = []
    for item in items:
        if is_multi_modal_content(item):
            blocks.append({"type": "file", "item": item})
        else:
            text = item if isinstance(item, str) else ToolReturnPart("", item, tool_call_id="").model_response_str()
            blocks.append(text_block(text))
    return Output(blocks, original=(result,))


def _to_result(reply: Reply) -> Any:
    if reply.passed and not isinstance(reply.value, str):  # the search for tools answers with a string
        return reply.value[0]  # in a tuple, because a tool may return None
    files = [block["item"] for block in reply.content if block.get("type") == "file"]
    value: Any = [reply.text, *files] if files else reply.text
    original = reply.original[0] if reply.original else None
    return replace(original, return_value=value) if isinstance(original, ToolReturn) else value


def read_conversation(messages: Sequence[ModelMessage]) -> Iterator[Entry]:
    """Read the conversation. Only plain results can be replaced, because Pydantic AI reads the results of its own tools again."""
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCallPart):
                yield Called(part.tool_call_id, part.tool_name, part.args)
            elif type(part) is ToolReturnPart and not part.files:
                yield OldResult((index, number), part.tool_call_id, part.model_response_str(), part.outcome != "success")
            else:
                content = getattr(part, "content", "")
                texts = [content] if isinstance(content, str) else content if isinstance(content, list | tuple) else ()
                said = "\n".join(each for each in texts if isinstance(each, str))
                yield Said("assistant" if isinstance(message, ModelResponse) else "user", said)


def replace_results(messages: Sequence[ModelMessage], lines: Lines) -> list[ModelMessage]:
    changed: list[ModelMessage] = []
    for index, message in enumerate(messages):
        parts = [
            replace(part, content=lines[index, number]) if (index, number) in lines else part
            for number, part in enumerate(message.parts)
        ]
        changed.append(replace(message, parts=parts) if parts != message.parts else message)
    return changed
