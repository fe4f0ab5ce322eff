"""agno: a hook around each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.integrations.drivers.agno import AgnoAgent, ScriptedModel


def do_nothing(
    function_name: str, function_call: Callable[..., Any], arguments: dict[str, Any], run_context: Any, agent: Any = None
) -> Any:
    return function_call(**arguments)


def make_agent(functions: Any, script: Any) -> Any:
    return AgnoAgent(model=ScriptedModel(script=script), tools=list(functions), tool_hooks=[do_nothing])
