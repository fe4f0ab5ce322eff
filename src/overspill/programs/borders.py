"""A program stays with one server: what it read of one must not reach another, unless the user permits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from overspill.errors import BadRequest
from overspill.reading.references import may_pass
from overspill.types import Kept, LineageCall
from overspill.wording import programs as wording

Origin: TypeAlias = tuple[str, str]
"""A server, empty for the host program, and a tool."""


class Borders:
    def __init__(self, allow: Sequence[tuple[str, str]]) -> None:
        self._allow = allow
        self._entered: dict[Origin, str] = {}
        self.calls: list[LineageCall] = []
        """The calls of tools so far."""

    @property
    def server(self) -> str:
        """Where what the program makes belongs to. If it is of several servers, no single one may have it."""
        return "+".join(sorted({server for server, _ in self._entered if server}))

    def enter_output(self, kept: Kept) -> None:
        """It may be read beside others if what was read may pass between them, in either direction."""
        here = (kept.server, kept.tool)
        for other, what in self._entered.items():
            if not (may_pass(other, here, self._allow) or may_pass(here, other, self._allow)):
                raise BadRequest(wording.other_server(f"{kept.name} of {kept.server or 'this program'}", what))
        self._entered.setdefault(here, f"{kept.name} of {kept.server or 'this program'}")

    def enter_tool(self, server: str, tool: str) -> None:
        """Everything that was read so far may be in its arguments."""
        here, name = (server, tool), f"{server}/{tool}" if server else tool
        for other, what in self._entered.items():
            if not may_pass(other, here, self._allow):
                raise BadRequest(wording.other_server(name, what))
        self._entered.setdefault(here, name)
