"""Strands: an agent for each conversation, as Strands wants it, and one plugin for all of them."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from strands import Agent, tool
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager

from overspill.integrations.strands import OverspillPlugin
from tests.integrations.driving import Request, Script, run_program


class ScriptedModel(Model):
    def __init__(self, script: Script) -> None:
        self._script = script

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, tool_specs: Any = None, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        step = self._script(_read(messages, tool_specs or []))
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(step, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": step}}}
            yield {"contentBlockStop": {}}
        else:
            for call in step:
                yield {"contentBlockStart": {"start": {"toolUse": {"name": call.name, "toolUseId": call.id}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(call.args))}}}}
                yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(step, str) else "tool_use"}}


def _read(messages: Any, tool_specs: Any) -> Request:
    blocks = [block for message in messages for block in message["content"]]
    answers = [block["toolResult"] for block in blocks if "toolResult" in block]
    results = {answer["toolUseId"]: "\n".join(map(_show, answer["content"])) for answer in answers}
    texts = [block["text"] for block in blocks if "text" in block]
    tools = {spec["name"]: spec for spec in tool_specs}
    shown = [block["image"]["source"]["bytes"] for answer in answers for block in answer["content"] if "image" in block]
    images = [base64.b64encode(each).decode() for each in shown]
    return Request(tools, results, "\n".join([*texts, *results.values()]), len(messages), images)


def _show(block: Any) -> str:
    return block["text"] if "text" in block else json.dumps(block, default=str)


class StrandsAgent:
    def __init__(self, **parts: Any) -> None:
        self._parts = parts
        self._place = tempfile.mkdtemp()

    def _make(self, conversation: str = "") -> Agent:
        manager = FileSessionManager(session_id=conversation.encode().hex(), storage_dir=self._place) if conversation else None
        return Agent(**self._parts, callback_handler=None, retry_strategy=None, session_manager=manager)

    async def run(self, prompt: str, conversation: str = "") -> str:
        return str(await self._make(conversation).invoke_async(prompt)).removesuffix("\n")

    def run_sync(self, prompt: str) -> str:
        return str(self._make()(prompt))

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        async for event in self._make().stream_async(prompt):
            yield event.get("data", "")


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        plugins = [] if bare else [OverspillPlugin(**options)]
        return StrandsAgent(model=ScriptedModel(script), tools=[tool(each) for each in functions], plugins=plugins)

    def make_result(self, text: str, image: bytes) -> Any:
        return {"status": "success", "content": [{"text": text}, {"image": {"format": "png", "source": {"bytes": image}}}]}

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, 'OpenAIModel(model_id="gpt-5")', ScriptedModel(script))


DRIVER = Driver()
