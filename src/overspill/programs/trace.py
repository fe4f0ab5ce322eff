"""What a program has used. It must all be from one server unless the user permits more: data must not reach another server."""

from __future__ import annotations

from collections.abc import Sequence

from overspill.errors import BadRequest
from overspill.reading.references import may_pass
from overspill.types import Lineage, LineageCall, LineageSource
from overspill.wording import programs as wording


class Trace:
    def __init__(self, code: str, allow: Sequence[tuple[str, str]]) -> None:
        self._code, self._allow = code, allow
        self._entered: dict[tuple[str, str], str] = {}
        """By server (empty for the host program) and tool."""
        self.sources: dict[str, LineageSource] = {}
        self.calls: list[LineageCall] = []

    def enter(self, server: str, tool: str, what: str, *, is_output: bool = False) -> None:
        """Note a tool or an output. Raises BadRequest for another server, because arguments may hold anything read so far."""
        here = (server, tool)
        for other, before in self._entered.items():
            if not (may_pass(other, here, self._allow) or (is_output and may_pass(here, other, self._allow))):
                raise BadRequest(wording.other_server(what, before))
        self._entered.setdefault(here, what)

    def describe(self) -> Lineage:
        """Describe what the output was made from. Output from several servers belongs to all, and no single one may have it."""
        server = "+".join(sorted({server for server, _ in self._entered if server}))
        return Lineage(self._code, tuple(self.sources.values()), tuple(self.calls), "python", server)
