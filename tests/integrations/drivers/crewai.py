"""CrewAI: a crew of one for each run, and a session around it. CrewAI runs tools in threads, so async functions are called on the
loop of the test."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from functools import wraps
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from overspill import ContextBudget, SyncSession
from overspill.integrations.crewai import wrap_tools
from tests.integrations.driving import Request, Script, run_program


class ScriptedModel(BaseLLM):
    script: Any = None
    loop: Any = None

    def call(self, messages: Any, tools: Any = None, *args: Any, **kwargs: Any) -> Any:
        async def follow() -> Any:
            return self.script(request)

        request = _read(messages, tools or [])
        step = self.script(request) if self.loop is None else asyncio.run_coroutine_threadsafe(follow(), self.loop).result()
        if isinstance(step, str):
            return step
        made = [(call.id, {"name": call.name, "arguments": json.dumps(dict(call.args))}) for call in step]
        return [{"id": id, "type": "function", "function": function} for id, function in made]

    def supports_function_calling(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 100_000  # CrewAI puts results over a quarter of the window into a file of its own


def _read(messages: Any, tools: Any) -> Request:
    results = {each["tool_call_id"]: str(each["content"]) for each in messages if each["role"] == "tool"}
    text = "\n".join(str(each.get("content") or "") for each in messages)
    return Request({each["function"]["name"]: each["function"] for each in tools}, results, text, len(messages))


def _block(function: Callable[..., Any], loop: Any) -> Callable[..., Any]:
    @wraps(function)
    def call(**args: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(function(**args), loop).result()

    return call if inspect.iscoroutinefunction(function) else function


class CrewAgent:
    def __init__(self, functions: Sequence[Callable[..., Any]], script: Script, options: Any) -> None:
        self._functions, self._script, self._options = functions, script, options

    def _kick_off(self, prompt: str, conversation: str, loop: Any, stream: bool = False) -> str:
        functions = [_block(each, loop) for each in self._functions]
        if self._options is None:
            return self._run([tool(each) for each in functions], prompt, loop, stream)
        options = dict(self._options)
        searching = {"tool_search": options.pop("tool_search")} if "tool_search" in options else {}
        with SyncSession(**options, name=conversation, notice=False) as session:
            return self._run(wrap_tools(functions, session, **searching), prompt, loop, stream)

    def _run(self, tools: Any, prompt: str, loop: Any, stream: bool) -> str:
        model = ScriptedModel(model="scripted", script=self._script, loop=loop)
        agent = Agent(role="helper", goal="help", backstory="none", llm=model, tools=tools, max_retry_limit=0)
        task = Task(description=prompt, expected_output="an answer", agent=agent)
        crew = Crew(agents=[agent], tasks=[task], stream=stream)
        if not stream:
            return crew.kickoff().raw
        running = crew.kickoff()
        for _ in running:
            pass
        return running.result.raw

    async def run(self, prompt: str, conversation: str = "") -> str:
        return await asyncio.to_thread(self._kick_off, prompt, conversation, asyncio.get_running_loop())

    def run_sync(self, prompt: str) -> str:
        return self._kick_off(prompt, "", None)

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        yield await asyncio.to_thread(self._kick_off, prompt, "", asyncio.get_running_loop(), True)


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        if "budget" in options:
            options["budget"] = ContextBudget(options["budget"])
        return CrewAgent(functions, script, None if bare else options)

    def make_result(self, text: str, image: bytes) -> Any:
        raise NotImplementedError

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, '"gpt-5"', ScriptedModel(model="scripted", script=script))


DRIVER = Driver()
