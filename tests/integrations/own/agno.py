"""What only agno has: results with media, hooks, stored runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agno.agent import Agent
from agno.media import Image
from agno.tools import Toolkit, tool
from agno.tools.function import ToolResult

from overspill import Settings
from overspill.integrations.agno import overspill
from tests.integrations.drivers.agno import ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, find_name, read_log, settings
from tests.integrations.suite_searching import call, delete, make_many

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


def search(script: Scripted, tools: list[Any], **options: Any) -> Any:
    return make_agent(script, tools=tools, settings=Settings(toolSearch="on"), tool_search=True, **options).run("Go.")


def test_functions_of_toolkits_are_found_and_hooks_see_them_by_their_own_names():
    seen: list[str] = []

    def watch(function_name: str, function_call: Any, arguments: Any) -> Any:
        seen.append(function_name)
        return function_call(**arguments)

    script = Scripted([call("send_1", {"text": "a"}, "c1"), call("send_1", {"words": 1}, "c2")], "done")
    search(script, [Toolkit("rooms", tools=make_many(3))], tool_hooks=[watch])
    assert "send_1" not in script.requests[0].tools
    assert script.last.results["c1"] == "1: a"
    assert "The arguments do not fit the tool: missing text." in script.last.results["c2"]
    assert seen == ["call_tool", "send_1", "call_tool", "send_1"]


def test_the_model_cannot_get_round_a_confirmation_by_searching_for_the_tool():
    script = Scripted([call("delete", {"name": "7"}, "c1")], [Call("delete", {"name": "7"}, "c2")])
    output = search(script, [tool(requires_confirmation=True)(delete), *make_many(2)])
    assert "delete" in script.requests[0].tools
    assert "no tool 'delete'" in script.last.results["c1"]
    assert [each.tool_name for each in output.tools_requiring_confirmation] == ["delete"]
