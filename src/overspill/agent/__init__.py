"""Agents from files: a prompt, models and tools in one `.ai` file, run turn by turn behind the gate."""

from __future__ import annotations

from overspill.agent.file.load import Agent, Sources, load_agent
from overspill.agent.run.control import RunControl
from overspill.agent.run.record import RunRecord
from overspill.agent.run.run import run_agent

__all__ = ["Agent", "RunControl", "RunRecord", "Sources", "load_agent", "run_agent"]
