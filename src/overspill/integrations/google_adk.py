"""Google ADK: `Runner(…, plugins=[OverspillPlugin()])` or `App(…, plugins=[OverspillPlugin()])`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import copy
import json
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Unpack

from anyio import to_thread

from overspill.gate.collect import is_blocks
from overspill.gate.intent import LOOKING_FOR
from overspill.integrations.functions import show_reply
from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said, compact
from overspill.integrations.options import AdapterOptions, MissingFramework, Options
from overspill.integrations.searching import Searching
from overspill.integrations.sessions import AgentRun, Sessions
from overspill.types import Output

try:
    from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingFramework("google_adk", "google-adk>=2.13") from error


_MAX_THREADS = 40  # of blocking tools that run at the same time
_OF_ADK = frozenset({"transfer_to_agent", "set_model_response", "finish_task"})  # ADK instructs the model to call these directly


class OverspillPlugin(BasePlugin):
    """One plugin serves all users: each session of ADK has a session of Overspill.

    `settings`: as for `Session`. `session`: a session to share, or its name. `budget`: the model's window,
    which ADK does not know. `compact`: once this share of it is full, old results are replaced by their names.
    `tool_search`: the model searches for an agent's tools, if the setting `toolSearch` says so.
    """

    def __init__(self, name: str = "overspill", **options: Unpack[AdapterOptions]) -> None:
        super().__init__(name=name)
        self._sessions = Sessions(Options("google_adk", **options))
        self._tools = [_RetrievalTool(tool) for tool in self._sessions.definitions]
        self._runs: dict[str, AgentRun] = {}
        self._requests: dict[tuple[str, str], Any] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        id, session = invocation_context.invocation_id, invocation_context.session
        self._runs[id] = self._sessions.begin_run(json.dumps([session.app_name, session.user_id, session.id]))
        weakref.finalize(invocation_context, self._runs.pop, id, None)  # ADK says nothing of a run that was cancelled
        config = invocation_context.run_config or RunConfig()
        if config.tool_thread_pool_config is None:  # without a pool, a blocking tool would stop the event loop
            pool = ToolThreadPoolConfig(max_workers=_MAX_THREADS)
            invocation_context.run_config = config.model_copy(update={"tool_thread_pool_config": pool})

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        if (run := self._runs.pop(invocation_context.invocation_id, None)) is not None:
            await run.close()

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        await self.after_run_callback(invocation_context=invocation_context)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        run = self._runs.get(callback_context.invocation_id)
        if run is None or not llm_request.tools_dict:
            return
        self._requests[_name_request(callback_context)] = run.begin_request()
        self._ask(llm_request.config)
        llm_request.append_tools(self._tools)
        search = run.searches[callback_context.agent_name]
        self._hide(llm_request.config, search)
        llm_request.tools_dict = {name: _wrap(tool, run, search) for name, tool in llm_request.tools_dict.items()}
        lines = await compact(run, partial(read_conversation, llm_request.contents))
        if lines:
            llm_request.contents = replace_results(llm_request.contents, lines)
        if search.hidden:
            llm_request.contents = [fold_calls(content, search) for content in llm_request.contents]
        if notice := run.notice():
            llm_request.contents.append(types.Content(role="user", parts=[types.Part(text=notice)]))

    def _ask(self, config: Any) -> None:
        """Add `looking_for` to the schemas that the model sees, for tools that take it."""
        if self._sessions.options.session_settings.intent == "ask":
            for tool in config.tools or ():
                if declared := getattr(tool, "function_declarations", None):
                    tool.function_declarations = [widen_declaration(each, self._sessions.asking.widen) for each in declared]

    def _hide(self, config: Any, search: Searching) -> None:
        tools = [tool for tool in config.tools or () if getattr(tool, "function_declarations", None)]
        declared = [each for tool in tools for each in tool.function_declarations]
        shown = {each.name for each in search.choose(declared, read_schema, may_hide=lambda each: each.name not in _OF_ADK)}
        for tool in tools:
            tool.function_declarations = [each for each in tool.function_declarations if each.name in shown]

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        if llm_response.partial:
            return
        if (run := self._runs.get(callback_context.invocation_id)) is not None and llm_response.content is not None:
            unfold_calls(llm_response.content, run.searches[callback_context.agent_name])
        settle = self._requests.pop(_name_request(callback_context), None)
        if settle is not None and llm_response.usage_metadata is not None:
            settle(llm_response.usage_metadata.total_token_count)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        self._requests.pop(_name_request(callback_context), None)


def _name_request(context: Any) -> tuple[str, str]:
    """Return a key for a request, which names the agent too: agents of a run may ask their models at the same time."""
    return context.invocation_id, context.agent_name


class _RetrievalTool(BaseTool):
    def __init__(self, definition: dict[str, Any]) -> None:
        super().__init__(name=definition["name"], description=definition["description"])
        self._parameters = definition["parameters"]

    def _get_declaration(self) -> Any:
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=self._parameters)


def _wrap(tool: BaseTool, run: AgentRun, search: Searching) -> BaseTool:
    """Wrap a copy of the tool, so that callbacks still see a tool of the same type. ADK's confirmations stay around the call."""
    wrapped = copy.copy(tool)
    wrapped.run_async = partial(_run_tool, tool, run, search)
    return wrapped


async def _run_tool(tool: BaseTool, run: AgentRun, search: Searching, *, args: dict[str, Any], tool_context: Any) -> Any:
    async def call(**filled: Any) -> Any:
        result = await tool.run_async(args=filled, tool_context=tool_context)
        if not _is_mcp_result(result):
            return result
        return Output(result["content"], is_error=bool(result.get("isError")), original=result)

    id, said = tool_context.function_call_id or "", partial(_read_messages, tool_context.session)
    reply = await run.call(tool.name, args, call, id=id, messages=said, search=search)
    if isinstance(failed := reply.value, dict) and "error" in failed:  # ADK answers like this if arguments are missing
        why = await to_thread.run_sync(search.explain, tool.name, args, failed["error"])
        return {**failed, "error": why} if why else failed
    if reply.passed or not _is_mcp_result(reply.original):
        return show_reply(reply)
    return {**reply.original, "content": reply.content, "structuredContent": None}


def _is_mcp_result(result: Any) -> bool:
    return isinstance(result, dict) and is_blocks(result.get("content"))


def _read_messages(session: Any) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for event in session.events[-20:]:
        texts = [part.text for part in (event.content.parts if event.content else None) or () if part.text]
        if texts:
            said.append({"role": "user" if event.author == "user" else "assistant", "content": "\n".join(texts)})
    return said


def read_conversation(contents: list[Any]) -> Iterator[Entry]:
    for index, content in enumerate(contents):
        for number, part in enumerate(content.parts or ()):
            if (call := part.function_call) is not None:
                yield Called(call.id or "", call.name, call.args)
            elif (answer := part.function_response) is not None and not answer.parts:
                response = answer.response or {}
                is_text = list(response) == ["result"] and isinstance(response["result"], str)
                text = response["result"] if is_text else json.dumps(response, ensure_ascii=False, default=str)
                yield OldResult((index, number), answer.id or "", text, "error" in response or bool(response.get("isError")))
            else:
                yield Said("assistant" if content.role == "model" else "user", part.text or "")


def replace_results(contents: list[Any], lines: Lines) -> list[Any]:
    def replace(part: Any, place: tuple[int, int]) -> Any:
        if place not in lines:
            return part
        answer = part.function_response.model_copy(update={"response": {"result": lines[place]}})
        return part.model_copy(update={"function_response": answer})

    return [
        content.model_copy(update={"parts": [replace(part, (index, number)) for number, part in enumerate(content.parts or ())]})
        for index, content in enumerate(contents)
    ]


def read_schema(declared: Any) -> Any:
    if declared.parameters_json_schema is None and declared.parameters is not None:
        return declared.parameters.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return declared.parameters_json_schema


def unfold_calls(content: Any, search: Searching) -> None:
    """Turn calls of `call_tool` into calls of the tools themselves, which ADK stores, confirms and shows. A call that does not
    fit is left alone, and is answered with the reason."""
    for part in content.parts or ():
        if (call := part.function_call) is not None and isinstance(found := search.read(call.name, call.args), tuple):
            part.function_call = call.model_copy(update={"name": found[0], "args": found[1]})


def fold_calls(content: Any, search: Searching) -> Any:
    """Turn calls of the tools back into the calls of `call_tool` that the model made."""

    def fold(part: Any) -> Any:
        if (call := part.function_call) is not None and call.name in search.hidden:
            called = {"name": search.call_tool, "args": {"name": call.name, "arguments": call.args or {}}}
            return part.model_copy(update={"function_call": call.model_copy(update=called)})
        if (answer := part.function_response) is not None and answer.name in search.hidden:
            return part.model_copy(update={"function_response": answer.model_copy(update={"name": search.call_tool})})
        return part

    return content.model_copy(update={"parts": [fold(part) for part in content.parts or ()]})


def widen_declaration(declared: Any, widen: Callable[..., Any]) -> Any:
    """Add `looking_for` to a declaration. ADK describes arguments as JSON Schema, as a `Schema` of the API, or not at all."""
    if (schema := declared.parameters_json_schema) is not None:
        return declared.model_copy(update={"parameters_json_schema": widen(declared.name, schema)})
    known = declared.parameters or types.Schema(type=types.Type.OBJECT)
    own = known.properties or {}
    described = {"type": "object", "properties": {name: {} for name in own}, "required": list(known.required or ())}
    added = widen(declared.name, described)["properties"].get(LOOKING_FOR)
    if not added:  # empty if the tool has an argument with this name itself
        return declared
    ours = types.Schema(type=types.Type.STRING, description=added["description"])
    return declared.model_copy(update={"parameters": known.model_copy(update={"properties": {**own, LOOKING_FOR: ours}})})
