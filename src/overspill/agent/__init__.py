"""Agents from files: a prompt, models and tools in one `.ai` file, run turn by turn behind the gate."""

from __future__ import annotations

from overspill.agent.file.load import Agent, Sources, load_agent
from overspill.agent.run.control import Control
from overspill.agent.run.record import Record
from overspill.agent.run.run import run_agent

__all__ = ["Agent", "Control", "Record", "Sources", "load_agent", "run_agent"]
