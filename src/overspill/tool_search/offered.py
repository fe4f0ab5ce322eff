"""Which tools a model must search for, and the search over tools that a host program defines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import BadRequest, describe_type
from overspill.schema.arguments import describe_function
from overspill.schema.signatures import as_object
from overspill.settings import Settings
from overspill.text import tokens
from overspill.text.arguments import read_arguments
from overspill.text.lenient_json import dumps
from overspill.tool_search.search import SEARCH_TOOLS, ToolSearch, read_call
from overspill.tool_search.words import SearchedTool
from overspill.types import Output, Reply
from overspill.wording import tool_search as wording

_SCHEMAS = ("parameters", "inputSchema", "input_schema", "parametersJsonSchema")
"""The keys that hold the schema in the various formats of definitions."""
AUTO_ABOVE = 10_000
"""Tokens of schemas above which `auto` searches."""
_FEWEST_BYTES_PER_TOKEN = 2
"""Schemas never have fewer. If a list must be short by this measure, its tokens are not counted, which needs a vocabulary."""


class SearchRule(Struct, frozen=True):
    """Says which tools are searched for, as the settings want it. Decided once for a conversation."""

    settings: Settings
    is_all_behind: bool = False
    """Whether tools whose rule is `auto` are searched for, too."""

    def decide(self, tools: Iterable[SearchedTool]) -> SearchRule:
        auto = [tool for tool in tools if self._choose(tool) == "auto"]
        return SearchRule(self.settings, bool(auto) and _are_long(auto))

    def hides(self, tool: SearchedTool) -> bool:
        if tool.is_destructive and self.settings.direct_tools == "destructive":
            return False
        chosen = self._choose(tool)
        return chosen == "on" or (chosen == "auto" and self.is_all_behind)

    def _choose(self, tool: SearchedTool) -> str:
        return self.settings.for_tool(tool.own_name or tool.name, tool.server).tool_search


class HostToolSearch:
    """The tool search of one session. `direct`: the tools to offer without search."""

    def __init__(self, tools: Sequence[Any], settings: Settings, prefix: str, taken: Iterable[str]) -> None:
        self._settings = settings
        self._shown = {own: prefix + own for own in SEARCH_TOOLS}
        read = [read_definition(tool) for tool in tools]
        rule = SearchRule(settings).decide(read)
        self._behind = [tool for tool in read if rule.hides(tool)]
        self.direct = [tool for tool, each in zip(tools, read, strict=True) if not rule.hides(each)]
        self.definitions = SEARCH_TOOLS.values() if self._behind else ()
        self.names = {tool.name for tool in self._behind}
        self._search = ToolSearch(self._behind, self._shown)
        self.explain = self._search.explain
        self._is_learning = False
        others = [*taken]
        counted = Counter([*(tool.name for tool in read), *others, *{*self._shown.values()}.difference(others)])
        if self._behind and (twice := next((name for name, times in counted.items() if times > 1), None)):
            raise BadRequest(f"Two tools have the name {twice}. Rename yours, or give the session a tool_prefix.")

    def answer(self, own: str, args: Mapping[str, Any], now: Set[str] | None = None) -> Output:
        """Answer `find_tools` and `describe_tools`. `now`: the tools that still exist. Blocks."""
        if not self._is_learning:
            self._is_learning = True
            self._search.learn_apart(self._settings)
        return self._search.answer(own, args, now)

    def read(self, args: object, now: Set[str] | None = None) -> tuple[str, dict[str, Any]]:
        """Return the name of the tool that `call_tool` calls, and its arguments. Raises BadRequest if there is no such tool."""
        name, given = read_call(as_object(read_arguments(args)))
        if name in self.names and (now is None or name in now):
            return name, given
        is_direct = name in self._shown.values() or any(read_definition(tool).name == name for tool in self.direct)
        raise BadRequest(wording.own_tool(name) if is_direct else self._search.explain_unknown(name, now))

    def complete(self, reply: Reply, name: str, args: Mapping[str, Any]) -> Reply:
        """Add to the answer to a failed call what is wrong with its arguments. Blocks."""
        if not (why := self.explain(name, args)):
            return reply
        content = [*reply.content, {"type": "text", "text": why}]
        return replace(reply, text=f"{reply.text}\n{why}", content=content, passed=False)


def read_definition(tool: Any) -> SearchedTool:
    """Read a function, or a definition in any of the formats that `Session.tools` writes. Leaves out a schema that is nested too
    deeply to be written."""
    if isinstance(tool, SearchedTool):
        return tool
    if callable(tool):
        function = cast("Callable[..., Any]", tool)
        name = getattr(function, "__name__", type(function).__name__)
        return SearchedTool(name, function.__doc__ or "", describe_function(function))
    known = as_object(as_object(tool).get("function", tool))
    name = known.get("name")
    if not isinstance(name, str) or not name:
        raise BadRequest(f"A tool must be a function, or a definition with a name, not {describe_type(tool)}.")
    schema = as_object(next((known[key] for key in _SCHEMAS if key in known), None))
    try:
        dumps(schema)
    except RecursionError:
        schema = as_object(None)
    is_destructive = as_object(known.get("annotations")).get("destructiveHint") is True
    return SearchedTool(name, str(known.get("description") or ""), schema, is_destructive=is_destructive)


def _are_long(tools: Sequence[SearchedTool]) -> bool:
    """Whether what a client would send to its model for these tools is long."""
    sent = dumps([{"name": tool.name, "description": tool.description, "inputSchema": tool.parameters} for tool in tools])
    return len(sent) > AUTO_ABOVE * _FEWEST_BYTES_PER_TOKEN and tokens.has_more_than(sent.decode(), AUTO_ABOVE)
