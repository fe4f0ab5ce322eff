"""Agents from files: a prompt, models and tools in one `.ai` file, run turn by turn behind the gate."""

from __future__ import annotations

from overspill.agent.control import Control
from overspill.agent.load import Agent, Sources, load_agent
from overspill.agent.record import Record
from overspill.agent.run import run_agent

__all__ = ["Agent", "Control", "Record", "Sources", "load_agent", "run_agent"]
