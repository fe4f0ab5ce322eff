"""Microsoft Agent Framework: `Agent(client, …, middleware=[OverspillMiddleware()])`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Unpack

from overspill.gate.collect import text_block
from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said, compact
from overspill.integrations.options import AdapterOptions, MissingFramework, Options
from overspill.integrations.searching import Searching
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from overspill.types import Output

try:
    from agent_framework import (
        AgentContext,
        AgentMiddleware,
        ChatContext,
        ChatMiddleware,
        Content,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool,
        Message,
    )
except ModuleNotFoundError as error:
    raise MissingFramework("agent_framework", "agent-framework-core>=1.23") from error


_Next = Callable[[], Awaitable[None]]


class OverspillMiddleware(AgentMiddleware):
    """One middleware serves all users: each `AgentSession` has a session of Overspill, and so has each run without one.

    `settings`: as for `Session`. `session`: a session to share, or its name. `budget`: the model's window,
    which the framework does not know. `compact`: once this share of it is full, old results are replaced by their names.
    `tool_search`: the model searches for an agent's tools, if the setting `toolSearch` says so.
    """

    def __init__(self, **options: Unpack[AdapterOptions]) -> None:
        self._sessions = Sessions(Options("agent_framework", **options), misfit=TypeError)
        self._tools = [
            FunctionTool(name=tool["name"], description=tool["description"], func=refuse, input_model=tool["parameters"])
            for tool in self._sessions.definitions
        ]

    async def process(self, context: AgentContext, call_next: _Next) -> None:
        """Add tools, and middleware for this run alone, which therefore knows whose run it is."""
        run = self._sessions.begin_run("" if context.session is None else context.session.session_id)
        given = context.tools if context.tools is not None else (context.options or {}).get("tools")
        context.tools = [*(given if isinstance(given, list | tuple) else [] if given is None else [given]), *self._tools]
        requests = _Requests(run)
        parts = [*context.client_kwargs.get("middleware", ()), requests, _Calls(run, requests)]
        context.client_kwargs = {**context.client_kwargs, "middleware": parts}
        if context.stream:
            context.stream_cleanup_hooks.append(run.close)
            await call_next()
            return
        try:
            await call_next()
        finally:
            await run.close()


class _Requests(ChatMiddleware):
    def __init__(self, run: AgentRun) -> None:
        self._run, self._search = run, run.searching
        self._messages: list[Any] = []

    async def process(self, context: ChatContext, call_next: _Next) -> None:
        settle = self._run.begin_request()
        self._messages = list(context.messages[-20:])
        lines = await compact(self._run, partial(read_conversation, context.messages))
        if lines:
            context.messages = replace_results(context.messages, lines)
        if self._search.is_on:
            self._hide(context)
        if notice := self._run.notice():
            context.messages = [*context.messages, Message("user", [notice])]

        def finish(response: Any) -> None:
            settle(_count_tokens(response))
            unfold_calls(response, self._search)

        if context.stream:
            context.stream_result_hooks.append(finish)
        await call_next()
        if not context.stream:
            finish(context.result)

    def _hide(self, context: ChatContext) -> None:
        options = context.options or {}
        functions = [each for each in options.get("tools") or () if isinstance(each, FunctionTool)]
        others = [each for each in options.get("tools") or () if not isinstance(each, FunctionTool)]
        context.options = {**options, "tools": [*self._search.choose(functions, FunctionTool.parameters), *others]}
        context.messages = fold_calls(context.messages, self._search)

    def read_messages(self) -> list[dict[str, Any]]:
        """Return the end of the conversation, which the framework does not show to calls of tools."""
        return [{"role": each.role, "content": each.text} for each in self._messages if each.text]


class _Calls(FunctionMiddleware):
    def __init__(self, run: AgentRun, requests: _Requests) -> None:
        self._run, self._requests = run, requests

    async def process(self, context: FunctionInvocationContext, call_next: _Next) -> None:
        given: dict[str, Any] = (
            dict(context.arguments) if isinstance(context.arguments, Mapping) else context.arguments.model_dump()
        )

        async def tool(**filled: Any) -> Output:
            if filled != given:  # the framework has already checked the model's own arguments
                context.arguments = filled
            await call_next()
            return _to_output(context.result)

        id, name = str(context.metadata.get("call_id") or ""), context.function.name
        reply = await self._run.call(name, given, tool, id=id, messages=self._requests.read_messages)
        context.result = reply.value
        if not reply.passed:
            blocks = reply.content
            context.result = [Content.from_text(each["text"]) if each["type"] == "text" else each["content"] for each in blocks]


def _count_tokens(response: Any) -> int | None:
    return (getattr(response, "usage_details", None) or {}).get("total_token_count")


def _to_output(result: Any) -> Output:
    """Content that is not text passes unchanged. The framework shows other objects to the model as `str(result)`."""
    if isinstance(result, list) and all(isinstance(each, Content) for each in result):
        blocks = [text_block(each.text or "") if each.type == "text" else {"type": "other", "content": each} for each in result]
        return Output(blocks, original=result)
    return Output([] if isinstance(result, Content) else [text_block(str(result))], original=result)


def unfold_calls(response: Any, search: Searching) -> None:
    """Turn calls of `call_tool` into calls of the tools themselves, which the framework approves, runs and stores. A call that
    does not fit is left alone, and is answered with the reason."""
    for call in (
        each for message in getattr(response, "messages", ()) for each in message.contents if each.type == "function_call"
    ):
        if isinstance(found := search.read(call.name, call.arguments), tuple):
            call.name, call.arguments = found


def fold_calls(messages: Sequence[Any], search: Searching) -> list[Any]:
    """Turn calls of the tools back into the calls of `call_tool` that the model made."""

    def fold(content: Content) -> Content:
        if content.type != "function_call" or content.name not in search.hidden:
            return content
        ours = copy(content)
        ours.name, ours.arguments = search.call_tool, {"name": content.name, "arguments": content.parse_arguments() or {}}
        return ours

    return _change_contents(messages, lambda content, _: fold(content))


def read_conversation(messages: Sequence[Any]) -> Iterator[Entry]:
    for index, message in enumerate(messages):
        for number, content in enumerate(message.contents):
            if content.type == "function_call":
                yield Called(content.call_id or "", content.name or "", content.arguments)
            elif content.type == "function_result" and all(each.type == "text" for each in content.items or ()):
                yield OldResult((index, number), content.call_id or "", str(content.result), content.exception is not None)
            else:
                yield Said("assistant" if message.role == "assistant" else "user", content.text or "")


def replace_results(messages: Sequence[Any], lines: Lines) -> list[Any]:
    def replace(content: Content, place: tuple[int, int]) -> Content:
        if place not in lines:
            return content
        ours = copy(content)
        ours.result, ours.items = lines[place], [Content.from_text(lines[place])]
        return ours

    return _change_contents(messages, replace)


def _change_contents(messages: Sequence[Any], change: Callable[[Content, tuple[int, int]], Content]) -> list[Any]:
    changed = [copy(message) for message in messages]
    for index, message in enumerate(changed):
        message.contents = [change(content, (index, number)) for number, content in enumerate(message.contents)]
    return changed
