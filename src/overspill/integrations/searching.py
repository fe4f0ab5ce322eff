"""The search that an adapter offers in place of its framework's tools."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from overspill.errors import BadRequest
from overspill.gate.collect import field, text_block
from overspill.settings import Settings
from overspill.text.lenient_json import dumps
from overspill.tool_search.offered import HostToolSearch, read_definition
from overspill.tool_search.search import SEARCH_TOOLS
from overspill.types import Output, Reply

_T = TypeVar("_T")


class Searches:
    """The searches of one adapter. Users with the same tools share an index, and no one else does.

    `definitions` are those of our own tools: the search, if it is on, and `retrieval`.
    """

    def __init__(self, settings: Settings, prefix: str, retrieval: Sequence[dict[str, Any]], *, is_on: bool) -> None:
        self._settings, self.prefix, self.is_on = settings, prefix, is_on
        search = SEARCH_TOOLS.values() if is_on else ()
        self.definitions: list[dict[str, Any]] = [
            *({"name": prefix + each.name, "description": each.description, "parameters": each.parameters} for each in search),
            *retrieval,
        ]
        self.own_names: frozenset[str] = frozenset(tool["name"] for tool in self.definitions)
        self._open: WeakValueDictionary[bytes, HostToolSearch] = WeakValueDictionary()

    def begin(self) -> Searching:
        """Begin the search of one agent in one conversation or run, because others have other tools."""
        return Searching(self)

    def open(self, definitions: Sequence[Any], taken: Sequence[str]) -> HostToolSearch:
        read = [*map(read_definition, definitions)]
        key = hashlib.sha256(dumps([read, sorted(taken)])).digest()
        opened = self._open.get(key) or HostToolSearch(read, self._settings, self.prefix, taken)
        return self._open.setdefault(key, opened)


class Searching:
    """The tool search of one run. The tools of its first request decide if it is used. Later tools are offered unchanged."""

    def __init__(self, searches: Searches) -> None:
        self._searches, self.is_on = searches, searches.is_on
        self._search: HostToolSearch | None = None
        self._here: dict[str, Any] = {}
        self._own = {searches.prefix + own: own for own in SEARCH_TOOLS}
        self.call_tool = f"{searches.prefix}call_tool"

    @property
    def is_decided(self) -> bool:
        return self._search is not None or not self.is_on

    @property
    def hidden(self) -> Set[str]:
        """The tools that the model searches for."""
        return self._search.names if self._search is not None else frozenset()

    def choose(
        self,
        offered: Sequence[_T],
        read_schema: Callable[[_T], Any],
        *,
        name: Callable[[_T], str] = lambda tool: field(tool, "name"),
        may_hide: Callable[[_T], bool] = lambda tool: True,
    ) -> list[_T]:
        """Choose which tools of this agent or run to show to the model. Our own are always shown."""
        if not self.is_on:
            return [*offered]
        theirs = [each for each in offered if name(each) not in self._searches.own_names and may_hide(each)]
        self._here = {name(each): each for each in theirs}
        if self._search is None:
            others = [str(name(each)) for each in offered if name(each) not in self._here]
            read = [
                {"name": name(each), "description": field(each, "description"), "parameters": read_schema(each)}
                for each in theirs
            ]
            self._search = self._searches.open(read, others)
        out = self.hidden & {*self._here} if self.hidden else self._own.keys()
        return [each for each in offered if name(each) not in out]

    def find(self, name: str) -> Any:
        """Return the framework's tool that `read` has named."""
        return self._here[name]

    def find_answer(self, name: str) -> Callable[..., Output] | None:
        if not self.is_on or name not in self._own:
            return None

        def answer(**args: Any) -> Output:
            # Adapters call tools that exist themselves, so this is only for the error.
            if isinstance(problem := self.read(name, args), str):
                return Output([text_block(problem)], is_error=True)
            return self._now.answer(self._own[name], args, self._here.keys())

        return answer

    def read(self, name: str, args: object) -> tuple[str, dict[str, Any]] | str | None:
        """Return the tool and the arguments that a call of `call_tool` names, or what is wrong with it; None for other calls."""
        if not self.is_on or name != self.call_tool:
            return None
        try:
            return self._now.read(args, self._here.keys())
        except BadRequest as problem:
            return str(problem)

    def explain(self, name: str, args: Any, said: object) -> str:
        """Explain a call that failed because of its arguments: what it said, and what is wrong with them. Else empty."""
        why = self._now.explain(name, args) if name in self.hidden else ""
        return f"{said}\n{why}" if why else ""

    def complete(self, reply: Reply, name: str, args: Any) -> Reply:
        return self._now.complete(reply, name, args) if reply.is_error and name in self.hidden else reply

    @property
    def _now(self) -> HostToolSearch:
        """The search; it has no tools if a run continues a call from an earlier run."""
        return self._search or self._searches.open([], [])
