"""`find_tools` and `describe_tools` over a list of tools, and the definitions of these and of `call_tool`."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from overspill.errors import BadRequest
from overspill.retrieval.definitions import Definition
from overspill.schema.signatures import write_signature
from overspill.text.arguments import read_arguments
from overspill.text.lenient_json import dumps
from overspill.tool_search.words import SearchedTool, WordRanking
from overspill.wording import tool_search as wording

AUTO_ABOVE = 10_000
"""Tokens of schemas above which `auto` searches."""
_SHOWN = 5
_MAX_QUERY_CHARS = 2_000
_MAX_NAMES = 20
_MAX_SCHEMA_CHARS = 100_000


class _FindTools(Struct, frozen=True):
    query: Annotated[str, Meta(description="what you want to do, in a few words")]


class _DescribeTools(Struct, frozen=True):
    names: list[str]


class _CallTool(Struct, frozen=True):
    name: str
    arguments: dict[str, Any]


SEARCH_TOOLS = {
    tool.name: tool
    for tool in (
        Definition("find_tools", wording.FIND, _FindTools),
        Definition("describe_tools", wording.DESCRIBE, _DescribeTools),
        Definition("call_tool", wording.CALL, _CallTool),
    )
}


class ToolSearch:
    """`shown`: how the model knows `find_tools`, `describe_tools` and `call_tool`."""

    def __init__(self, tools: Sequence[SearchedTool], shown: Mapping[str, str] = {}) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._listed = [*self.tools.values()]
        self._shown = {name: shown.get(name, name) for name in SEARCH_TOOLS}
        self._words = WordRanking(self._listed)

    def rank(self, query: str) -> list[SearchedTool]:
        """Those that have anything to do with the query, the best first."""
        scores = self._words.score(query[:_MAX_QUERY_CHARS])
        return [self._listed[at] for at in sorted(scores, key=lambda each: (-scores[each], each))]

    def find(self, query: object = "") -> str:
        servers = Counter(tool.server for tool in self._listed)
        if not isinstance(query, str) or not query.strip():
            raise BadRequest(wording.empty_query(servers))
        ranked = self.rank(query)
        if not ranked:
            return wording.nothing_found(servers)
        best = [write_signature(each.name, each.parameters, None, each.description, compact=True) for each in ranked[:_SHOWN]]
        return wording.found(best, len(ranked) - len(best), f"{self._shown['call_tool']}(name, arguments)")

    def describe(self, names: object = ()) -> str:
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list | tuple) or not names:
            raise BadRequest("`names` must be a list of names of tools.")
        asked = dict.fromkeys(str(name) for name in names[:_MAX_NAMES])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        known = [write_schema(self.tools[name]) for name in asked if name in self.tools]
        problems = [self.explain_unknown(name) for name in asked if name not in self.tools]
        left = [f"Only the first {_MAX_NAMES} names were read."] if len(names) > _MAX_NAMES else []  # pyright: ignore[reportUnknownArgumentType]
        return wording.described(known, [*problems, *left])

    def explain_unknown(self, name: str) -> str:
        """Never guesses: tools may differ only in case."""
        folded: dict[str, list[str]] = {}
        for each in self.tools:
            folded.setdefault(each.casefold(), []).append(each)
        nearest = difflib.get_close_matches(name.casefold()[:100], list(folded)[:2_000], n=3)
        return wording.unknown_tool(name, [each for close in nearest for each in folded[close]][:5], self._shown["find_tools"])


def read_call(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool that `call_tool` is to call, and its arguments: an object, JSON, or what is beside the name."""
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise BadRequest("`name` must be the name of a tool.")
    beside = {key: value for key, value in given.items() if key != "name"}
    args = read_arguments(given["arguments"]) if "arguments" in given else beside
    if args is None:
        return name, {}
    if not isinstance(args, dict):
        raise BadRequest(f"`arguments` must be an object, or a string with the JSON of one, not {type(args).__name__}.")
    return name, args  # pyright: ignore[reportUnknownVariableType]


def write_schema(tool: SearchedTool) -> str:
    written = dumps({"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}).decode()
    if len(written) <= _MAX_SCHEMA_CHARS:
        return written
    return write_signature(tool.name, tool.parameters, None, f"Its schema has {len(written)} characters, too many to show.")
