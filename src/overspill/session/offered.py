"""The retrieval tools as a session offers them, under the names by which the model knows them."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Any

from overspill import wording
from overspill.errors import require
from overspill.gate.intent import Messages, remember_said
from overspill.retrieval.definitions import TOOLS, Format, define_offered_tools
from overspill.session import checks
from overspill.settings import Settings
from overspill.types import Reply


class OfferedTools:
    def __init__(self, settings: Settings, prefix: str) -> None:
        require("tool_prefix", prefix, str, "a string")
        self._settings = settings
        self.prefix = prefix

    @property
    def names(self) -> list[str]:
        return [self.prefix + name for name in self._settings.surface]

    def owns(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(self.prefix) and name[len(self.prefix) :] in TOOLS

    def strip_prefix(self, name: str) -> str:
        """The name as Overspill knows it. Some hosts take the prefix off themselves."""
        return name[len(self.prefix) :] if self.owns(name) else name

    def define(self, format: Format) -> list[dict[str, Any]]:
        checks.check_format(format)
        return define_offered_tools(self._settings, format, self.prefix)

    async def run(self, calling: Awaitable[Reply], owner: object, messages: Messages) -> Reply:
        """Make a call whose answer has these names, and which looks for what was said."""
        with self.naming(), remember_said(owner, messages):
            return await calling

    def naming(self) -> AbstractContextManager[None]:
        return wording.prefixed(self.prefix)
