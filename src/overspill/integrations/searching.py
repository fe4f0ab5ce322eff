"""The search that an adapter offers in place of its framework's tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar

from overspill.errors import BadRequest
from overspill.gate.collect import text_block
from overspill.settings import Settings
from overspill.tool_search.offered import HostToolSearch
from overspill.tool_search.search import SEARCH_TOOLS
from overspill.types import Output

_T = TypeVar("_T")


class Searching:
    """It is decided with the tools of the first request. Later tools are offered unchanged."""

    def __init__(self, settings: Settings, *, is_on: bool) -> None:
        self._settings, self.is_on = settings, is_on
        self._search: HostToolSearch | None = None
        self._offered: Set[str] | None = None
        self.hidden: Set[str] = frozenset()
        """The tools that the model searches for."""

    def define(self) -> list[dict[str, Any]]:
        return [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in (SEARCH_TOOLS.values() if self.is_on else ())
        ]

    def hide(self, definitions: Sequence[Any], taken: Sequence[str]) -> Set[str]:
        """The names of the tools that this model is not shown: those it searches for, or else the search."""
        if self._search is None:
            self._search = HostToolSearch(definitions, self._settings, "", taken)
        self.hidden = self._search.names
        return self.hidden or SEARCH_TOOLS.keys()

    def choose(self, offered: Sequence[_T], own: Set[str], read: Callable[[_T], dict[str, Any]]) -> list[_T]:
        """Those that the model is shown of what this agent or run has now. `own`: names of tools that stay, such as the search.
        `read` returns the definition of a tool."""
        if not self.is_on:
            return [*offered]
        definitions = [read(each) for each in offered]
        self._offered = {each["name"] for each in definitions}
        hidden = self.hide([each for each in definitions if each["name"] not in own], [*own])
        return [each for each, definition in zip(offered, definitions, strict=True) if definition["name"] not in hidden]

    def begin_another(self) -> Searching:
        """For another agent or run, which has other tools."""
        return Searching(self._settings, is_on=self.is_on)

    def find_answer(self, name: str) -> Callable[..., Output] | None:
        search = self._search

        def answer(**args: Any) -> Output:
            assert search is not None
            try:
                self.read(name, args)  # a tool that is there, an adapter has called instead
            except BadRequest as problem:
                return Output([text_block(str(problem))], is_error=True)
            return search.answer(name, args)

        return answer if search is not None and name in SEARCH_TOOLS else None

    def read(self, name: str, args: object) -> tuple[str, dict[str, Any]] | None:
        """The tool that this call is for if it calls `call_tool`, and its arguments."""
        return self._search.read(args, self._offered) if self._search is not None and name == "call_tool" else None
