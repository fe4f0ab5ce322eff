"""For stories of agents: a folder with agent files, a scripted model, a real store, and what a script may want to look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from msgspec import Struct

from overspill.agent import RunControl, RunRecord, Sources, load_agent, run_agent
from overspill.agent.progress import Progress
from overspill.models.protocol import Model, Request, Response
from overspill.settings import Layer
from overspill.store.files.store import FileStore
from overspill.testing import ScriptedModel, ScriptedReply
from overspill.types import ToolCall

HANGS = 30.0
MODEL = "test/m"
SLOW = "asyncTimeoutSecs: 100\ntruncation: {overrides: {depot__slow: {asyncTimeoutSecs: 0.05}}}"
"""Only that tool goes to the background, however busy the machine is."""
_HANDLE = re.compile(r'handle = "([^"]+)"|stored as (out_\w+)')
_ID = re.compile(r"Tool Output ID: (\S+)")


class Seen(Struct, frozen=True):
    """A request, as a script looks at it."""

    request: Request

    @property
    def notice(self) -> str:
        return self.request.messages[-1].text

    @property
    def answers(self) -> list[str]:
        return [message.text for message in self.request.messages if message.role == "tool"]

    @property
    def handles(self) -> list[str]:
        return [handle or name for handle, name in _HANDLE.findall("\n".join(self.answers))]

    @property
    def ids(self) -> list[str]:
        return _ID.findall("\n".join(self.answers))

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.request.tools]

    @property
    def nonce(self) -> str:
        found = re.search(r"<ai-agent-(\w+)-FINAL", self.request.system)
        assert found
        return found[1]

    def wrapped(self, text: str, format: str = "markdown") -> str:
        return f'<ai-agent-{self.nonce}-FINAL format="{format}">\n{text}\n</ai-agent-{self.nonce}-FINAL>'


Say: TypeAlias = ScriptedReply | Callable[[Seen], ScriptedReply]


def scripted(*steps: Say, name: str = MODEL, **facts: Any) -> ScriptedModel:
    """Each step answers one request; the last one answers all that follow."""

    def reply(request: Request) -> ScriptedReply:
        step = steps[min(len(model.requests), len(steps)) - 1]
        return step(Seen(request)) if callable(step) else step

    model = ScriptedModel(reply, name=name, **facts)
    return model


_numbers = iter(range(1, 1_000_000))


def call(tool: str, /, **args: Any) -> ToolCall:
    return ToolCall(f"c{next(_numbers)}", tool, args)


def report(content: Any = "done") -> ToolCall:
    return call("agent__final_report", content=content)


def says(text: str, *calls: ToolCall) -> Response:
    return Response(text, calls, model=MODEL)


def seen(model: ScriptedModel) -> list[Seen]:
    return [Seen(request) for request in model.requests]


class Stage:
    """`settings` are what the user's own config says."""

    def __init__(self, folder: Path, server: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.events: list[Progress] = []
        self.settings: dict[str, Any] = {"models": MODEL, "extractionModel": "builtin/lexical"}
        if server:
            self.settings["mcpServers"] = {"depot": server}
        self.functions: dict[str, str | Callable[..., Any]] = {}
        self.environ: dict[str, str] = {}

    def write(self, name: str, frontmatter: str = "", prompt: str = "You look after parcels.") -> Path:
        path = self.folder / name
        path.write_text(f"---\n{frontmatter}\n---\n{prompt}\n")
        return path

    def function(self, source: str) -> None:
        """A Python function as a tool, given on the command line."""
        found = re.search(r"def (\w+)", source)
        assert found
        file = self.folder / f"{found[1]}.py"
        file.write_text(source)
        self.functions[found[1]] = f"{file}:{found[1]}"

    async def run(
        self,
        path: Path,
        *models: Model,
        question: str = "What happened?",
        control: RunControl | None = None,
        within: float = HANGS,
        command_line: Mapping[str, Any] = {},
        overrides: Mapping[str, Any] = {},
    ) -> RunRecord:
        sources = Sources(command_line, overrides, (Layer("config", self.settings),))
        store = FileStore(self.folder / "store")
        try:
            with anyio.fail_after(within):
                return await run_agent(
                    load_agent(path, sources),
                    question,
                    functions=self.functions,
                    models={model.name: model for model in models},
                    control=control,
                    observe=self.events.append,
                    store=store,
                    environ=self.environ,
                )
        finally:
            store.close()
