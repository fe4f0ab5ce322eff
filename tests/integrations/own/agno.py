"""What only agno has: results with media, hooks, stored runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agno.agent import Agent
from agno.media import Image
from agno.tools.function import ToolResult

from overspill import Settings
from overspill.integrations.agno import overspill
from tests.integrations.drivers.agno import ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, find_name, read_log, settings

__all__ = ["settings"]


def make_agent(script: Scripted, **options: Any) -> Agent:
    return Agent(model=ScriptedModel(script=script), telemetry=False, **overspill(**options))


def test_images_stay_beside_a_text_that_is_stored(settings: Settings):
    def look() -> ToolResult:
        """Look."""
        return ToolResult(content=LOG, images=[Image(content=b"png")])

    script = Scripted([Call("look")], "done")
    output = make_agent(script, tools=[look], settings=settings).run("Look.")
    assert "stored as out_" in script.last.results["c1"]
    assert output.images
    assert output.images[0].content == b"png"


async def test_what_a_stored_output_fills_in_is_not_stored_with_the_run(settings: Settings):
    async def count(text: str) -> int:
        """Count characters."""
        return len(text)

    def pass_on(request: Any) -> list[Call]:
        return [Call("count", {"text": "{{output:" + find_name(request.results["c1"]) + "}}"}, "c2")]

    script = Scripted([Call("read_log")], pass_on, lambda request: request.results["c2"])
    output = await make_agent(script, tools=[read_log, count], settings=settings).arun("Count it.")
    assert output.content == str(len(LOG))
    assert len(str([each.tool_args for each in output.tools])) < 1_000


def test_hooks_of_the_program_see_what_the_model_sees(settings: Settings):
    seen: list[int] = []

    def watch(function_name: str, function_call: Any, arguments: Any) -> Any:
        result = function_call(**arguments)
        seen.append(len(result))
        return result

    make_agent(Scripted([Call("read_log")], "done"), tools=[read_log], tool_hooks=[watch], settings=settings).run("Read it.")
    assert seen[0] < 10_000


def test_a_tool_that_yields_is_left_alone(settings: Settings):
    def count() -> Iterator[str]:
        """Count."""
        yield "one "
        yield "two"

    script = Scripted([Call("count")], lambda request: request.results["c1"])
    assert make_agent(script, tools=[count], settings=settings).run("Count.").content == "one two"
