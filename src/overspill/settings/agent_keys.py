"""The keys that only `overspill run` uses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from overspill.settings.keys import Count, Key, Limit, Name, Ratio, Retries, Seconds, Temperature


@dataclass(frozen=True, init=False, repr=False)
class AgentKeys:
    """The part of `Settings` for agents."""

    models: Annotated[
        tuple[Name, ...], Key("Models to ask, tried in this order.", "agent", for_agents=True, names_models=True)
    ] = ()
    max_turns: Annotated[
        Limit, Key("The most turns. In the last one, only the final report is possible.", "agent", for_agents=True)
    ] = 10
    max_tool_calls_per_turn: Annotated[Limit, Key("The most tool calls that run in one turn.", "agent", for_agents=True)] = 10
    context_window: Annotated[
        Limit | None, Key("Tokens of the whole conversation; null: the models' limit.", "agent", for_agents=True)
    ] = None
    context_buffer: Annotated[
        Count, Key("Tokens of the window that stay free in addition to the output's.", "agent", for_agents=True)
    ] = 256
    max_output_tokens: Annotated[
        Limit | None, Key("Tokens of one answer; null: the models' limit.", "agent", for_agents=True)
    ] = None
    temperature: Annotated[
        Temperature | None, Key("Sampling temperature; null: the provider's default.", "agent", for_agents=True)
    ] = None
    top_p: Annotated[Ratio | None, Key("Nucleus sampling; null: the provider's default.", "agent", for_agents=True)] = None
    llm_timeout: Annotated[
        Seconds | None, Key("Seconds for one request; null: the provider's time-out.", "agent", for_agents=True)
    ] = None
    max_retries: Annotated[
        Retries, Key("How often a request is retried after a temporary failure.", "agent", for_agents=True)
    ] = 2
    mcp_servers: Annotated[Mapping[str, Any] | None, Key("MCP servers by name.", "owner", for_agents=True, private=True)] = None
    functions: Annotated[
        Mapping[str, Name] | None,
        Key(
            "Python functions by name: `module:function`, or `file.py:function` relative to the config file.",
            "owner",
            for_agents=True,
        ),
    ] = None
