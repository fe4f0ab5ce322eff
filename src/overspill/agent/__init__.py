"""Agents from files: a prompt, models and tools in one `.ai` file, run turn by turn behind the gate."""

from __future__ import annotations

from overspill.agent.file import Agent, Sources, load_agent
from overspill.agent.record import RunRecord
from overspill.agent.run import run_agent
from overspill.agent.turns import RunControl

__all__ = ["Agent", "RunControl", "RunRecord", "Sources", "load_agent", "run_agent"]
