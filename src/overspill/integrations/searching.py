"""The search that an adapter offers in place of its framework's tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from overspill.settings import Settings
from overspill.tool_search.offered import HostToolSearch
from overspill.tool_search.search import SEARCH_TOOLS
from overspill.types import Output


class Searching:
    """It is decided with the tools of the first request. Tools that come later are offered as they are."""

    def __init__(self, settings: Settings, *, is_on: bool) -> None:
        self._settings, self.is_on = settings, is_on
        self._search: HostToolSearch | None = None

    def define(self) -> list[dict[str, Any]]:
        return [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in (SEARCH_TOOLS.values() if self.is_on else ())
        ]

    def hide(self, definitions: Sequence[Any], taken: Sequence[str]) -> Set[str]:
        """The names of the tools that this model is not shown: those it searches for, or else the search."""
        if self._search is None:
            self._search = HostToolSearch(definitions, self._settings, "", taken)
        return self._search.names or SEARCH_TOOLS.keys()

    def find_answer(self, name: str) -> Callable[..., Output] | None:
        search = self._search

        def answer(**args: Any) -> Output:
            assert search is not None
            return search.answer(name, args)

        return answer if search is not None and name in SEARCH_TOOLS else None

    def read(self, name: str, args: object) -> tuple[str, dict[str, Any]] | None:
        """The tool that this call is for if it calls `call_tool`, and its arguments."""
        return self._search.read(args) if self._search is not None and name == "call_tool" else None
