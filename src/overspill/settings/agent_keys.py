"""The keys that only `overspill run` uses."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from overspill.settings.keys import Count, Key, Limit, Name, Ratio, Retries, Seconds, Temperature

_AgentKey = partial(Key, set_by="agent", for_agents=True)


@dataclass(frozen=True, init=False, repr=False)
class AgentKeys:
    """The part of `Settings` for agents."""

    models: Annotated[tuple[Name, ...], _AgentKey("Models to ask, tried in this order.", names_models=True)] = ()
    max_turns: Annotated[Limit, _AgentKey("The most turns. In the last one, only the final report is possible.")] = 10
    max_tool_calls_per_turn: Annotated[Limit, _AgentKey("The most tool calls that run in one turn.")] = 10
    context_window: Annotated[Limit | None, _AgentKey("Tokens of the whole conversation; null: the models' limit.")] = None
    context_buffer: Annotated[Count, _AgentKey("Tokens of the window that stay free in addition to the output's.")] = 256
    max_output_tokens: Annotated[Limit | None, _AgentKey("Tokens of one answer; null: the models' limit.")] = None
    temperature: Annotated[Temperature | None, _AgentKey("Sampling temperature; null: the provider's default.")] = None
    top_p: Annotated[Ratio | None, _AgentKey("Nucleus sampling; null: the provider's default.")] = None
    llm_timeout: Annotated[Seconds | None, _AgentKey("Seconds for one request; null: the provider's time-out.")] = None
    max_retries: Annotated[Retries, _AgentKey("How often a request is retried after a temporary failure.")] = 2
    mcp_servers: Annotated[Mapping[str, Any] | None, _AgentKey("MCP servers by name.", set_by="owner", private=True)] = None
    functions: Annotated[
        Mapping[str, Name] | None,
        _AgentKey(
            "Python functions by name: `module:function`, or `file.py:function` relative to the config file.",
            set_by="owner",
        ),
    ] = None
