"""The Claude Agent SDK with the program that it brings, and a stand-in for Anthropic's API on loopback that follows the script.

Functions are tools of a server in this process. Claude Code puts `mcp__tools__` before their names; the script does not see it.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import io
import json
import os
import re
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, create_sdk_mcp_server, query, tool

from overspill.integrations.claude_agent_sdk import overspill_options
from tests.conformance.model_apis import serving, write_message
from tests.integrations.driving import Request, Script

_PREFIX = re.compile(r"^mcp__[a-z]\w*?__")


class ScriptedApi:
    """Only requests with tools are the agent's; Claude Code makes others of its own."""

    def __init__(self, script: Script, loop: asyncio.AbstractEventLoop | None) -> None:
        self.url = ""
        self._script, self._loop = script, loop
        self._names: dict[str, str] = {}

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        if "count_tokens" in path:
            return "application/json", b'{"input_tokens": 10}'
        tools = {each["name"]: each for each in body.get("tools", ())}
        if not any(map(_PREFIX.match, tools)):
            return write_message(body, [{"type": "text", "text": "done"}])
        self._names |= {_PREFIX.sub("", name): name for name in tools}
        request = _read(body["messages"], tools)
        step: Any = self._script(request) if self._loop is None else self._follow(request, self._loop)
        if isinstance(step, str):
            return write_message(body, [{"type": "text", "text": step}])
        marked = [(f"toolu_{uuid.uuid4().hex}_{call.id}", call) for call in step]  # a provider's ids are unique
        return write_message(
            body,
            [{"type": "tool_use", "id": id, "name": self._names[call.name], "input": dict(call.args)} for id, call in marked],
        )

    def _follow(self, request: Request, loop: asyncio.AbstractEventLoop) -> Any:
        """On the loop of the test, whose events the script may set."""

        async def follow() -> Any:
            return self._script(request)

        return asyncio.run_coroutine_threadsafe(follow(), loop).result()


def _read(messages: list[Any], tools: dict[str, Any]) -> Request:
    blocks = [
        block if isinstance(block, dict) else {"type": "text", "text": block}
        for message in messages
        for block in (message["content"] if isinstance(message["content"], list) else [message["content"]])
    ]
    answers = [block for block in blocks if block["type"] == "tool_result"]
    results = {answer["tool_use_id"].split("_", 2)[2]: _text(answer["content"]) for answer in answers}
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    named = {_PREFIX.sub("", name): tool for name, tool in tools.items()}
    parts = [part for answer in answers if isinstance(answer["content"], list) for part in answer["content"]]
    images = [part["source"]["data"] for part in parts if part["type"] == "image"]
    return Request(named, results, "\n".join([*texts, *results.values()]), len(messages), images)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def make_tool(function: Callable[..., Any]) -> Any:
    schema = {name: each for name, each in inspect.get_annotations(function, eval_str=True).items() if name != "return"}

    async def call(args: dict[str, Any]) -> dict[str, Any]:
        result = await function(**args) if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function, **args)
        if isinstance(result, dict) and "content" in result:
            return result
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}]}

    return tool(function.__name__, function.__doc__ or "", schema)(call)


class ClaudeAgent:
    def __init__(self, script: Script, options: dict[str, Any]) -> None:
        self._script, self._options = script, options

    async def run(self, prompt: str, conversation: str = "") -> str:
        return "".join([piece async for piece in self._ask(prompt, conversation)])

    def run_sync(self, prompt: str) -> str:
        return asyncio.run(self.run(prompt))

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        async for piece in self._ask(prompt, ""):
            yield piece

    async def _ask(self, prompt: str, conversation: str) -> AsyncIterator[str]:
        api = ScriptedApi(self._script, asyncio.get_running_loop())
        with serving(api), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            options = ClaudeAgentOptions(
                **self._options,
                env=make_environment(api.url, home),
                cwd=home,
                tools=[],
                setting_sources=[],
                session_id=str(uuid.uuid5(uuid.NAMESPACE_URL, conversation)) if conversation else None,
            )
            async for message in query(prompt=prompt, options=options):
                if isinstance(message, ResultMessage) and message.is_error:
                    raise RuntimeError(message.result)
                if isinstance(message, AssistantMessage):
                    for block in message.content:
                        if isinstance(block, TextBlock):
                            yield block.text


def make_environment(url: str, home: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": home,
        "HOME": home,
        "NO_PROXY": "127.0.0.1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        servers = {"tools": create_sdk_mcp_server("tools", tools=[make_tool(each) for each in functions])}
        given = {"mcp_servers": servers, "allowed_tools": ["mcp__tools"]}
        return ClaudeAgent(script, given if bare else overspill_options(**given, **options))

    def make_result(self, text: str, image: bytes) -> Any:
        shown = {"type": "image", "data": base64.b64encode(image).decode(), "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": text}, shown]}

    def run_page(self, source: str, script: Script) -> str:
        api, printed = ScriptedApi(script, None), io.StringIO()
        before = dict(os.environ)
        with serving(api), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            # Beside all built-in tools, a model would have to search for this one first.
            os.environ.update(make_environment(api.url, home) | {"ENABLE_TOOL_SEARCH": "false"})
            try:
                with redirect_stdout(printed):
                    exec(compile(source, "page", "exec"), {"__name__": "page"})  # noqa: S102
            finally:
                os.environ.clear()
                os.environ.update(before)
        return printed.getvalue()


DRIVER = Driver()
