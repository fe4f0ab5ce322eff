"""Overspill keeps large tool outputs whole and out of the context, and runs slow tools in the background.

The public interface. Names are loaded when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it, without importing `typing`
if TYPE_CHECKING:
    from typing import Any

    from overspill.budget import ContextBudget
    from overspill.calls.job import asking
    from overspill.errors import OverspillError
    from overspill.session.oneshot import extract
    from overspill.session.session import Session
    from overspill.session.sync import SyncSession
    from overspill.settings import Settings
    from overspill.types import Kept, Output, Reply, ToolCall

__version__ = "0.1.0"

__all__ = [
    "ContextBudget",
    "Kept",
    "Output",
    "OverspillError",
    "Reply",
    "Session",
    "Settings",
    "SyncSession",
    "ToolCall",
    "asking",
    "extract",
]

_HOMES = {
    "ContextBudget": "budget",
    "Kept": "types",
    "Output": "types",
    "OverspillError": "errors",
    "Reply": "types",
    "Session": "session.session",
    "Settings": "settings",
    "SyncSession": "session.sync",
    "ToolCall": "types",
    "asking": "calls.job",
    "extract": "session.oneshot",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'overspill' has no attribute {name!r}")
    return getattr(import_module(f"overspill.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
