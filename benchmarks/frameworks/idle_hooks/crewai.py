"""CrewAI: a tool that calls another tool, since there is no hook around a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crewai.tools import BaseTool
from pydantic import PrivateAttr

from tests.integrations.drivers.crewai import CrewAgent


class Wrapped(BaseTool):
    _call: Callable[..., Any] = PrivateAttr()

    def _run(self, **args: Any) -> Any:
        return self._call(**args)


def wrap(original: BaseTool) -> BaseTool:
    wrapped = Wrapped(name=original.name, description=original.description, args_schema=original.args_schema)
    wrapped._call = original.run
    return wrapped


class IdleAgent(CrewAgent):
    def _run(self, tools: Any, *others: Any) -> str:
        return super()._run([wrap(each) for each in tools], *others)


def make_agent(functions: Any, script: Any) -> Any:
    return IdleAgent(functions, script, None)
