"""Tools that run on the workers of a task engine, as a session's calls see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from msgspec import Struct

from overspill.types import Kept


class RemoteTool(ABC):
    """The worker limits its time and stores its output."""

    @abstractmethod
    async def __call__(self, /, **args: Any) -> Any: ...


class StoredElsewhere(Struct, frozen=True):
    """What a remote tool returns if its output stays where the worker has stored it."""

    kept: Kept | None
    """None if it failed and left nothing else."""
    error: str = ""
