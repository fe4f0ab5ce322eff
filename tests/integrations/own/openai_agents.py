"""What only the OpenAI Agents SDK has: a filter for what the model reads, and MCP servers."""

from __future__ import annotations

from agents import Agent, RunConfig, Runner, function_tool
from agents.run_config import CallModelData, ModelInputData

from overspill import Session, Settings
from overspill.integrations.openai_agents import overspill_agent
from tests.integrations.drivers.openai_agents import ScriptedModel
from tests.integrations.suite import settings
from tests.integrations.suite_conversations import WINDOW, find_replaced, read_page, read_pages

__all__ = ["settings"]


async def test_a_filter_replaces_old_results(settings: Settings):
    script = read_pages(lambda request: ", ".join(find_replaced(request)))
    tools = [function_tool(read_page, strict_mode=False)]
    async with Session(settings) as session:

        async def compact_input(data: CallModelData[None]) -> ModelInputData:
            items = await session.compact(data.model_data.input, WINDOW, threshold=0.6)
            return ModelInputData(items, data.model_data.instructions)

        agent = overspill_agent(Agent("agent", model=ScriptedModel(script), tools=tools), session=session)
        config = RunConfig(tracing_disabled=True, call_model_input_filter=compact_input)
        run = await Runner.run(agent, "Read all pages.", run_config=config, max_turns=30)
    assert run.final_output.startswith("c0, c1")
