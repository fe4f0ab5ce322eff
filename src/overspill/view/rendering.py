"""Stored text rendered for people by its kind: JSON as a tree, rows as a table, Markdown as a page, marks for diffs and logs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup
from msgspec import Struct

from overspill.lexical.kinds.delimited import find_delimiter
from overspill.text.encoding import decode
from overspill.text.humanize import escape_invisible, shorten
from overspill.view.texts import ShownText

Form: TypeAlias = Literal["tree", "table", "page", ""]
MAX_RENDERED_BYTES = 256 << 10
"""Of the beginning of an output. The rest is shown as text."""
MAX_NODES = 3_000
MAX_ROWS = 500
MAX_COLUMNS = 60
MAX_CELL_CHARS = 300
_MAX_DEPTH = 60
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_LEVEL = re.compile(r"\b(?:(FATAL|CRITICAL|ERROR|SEVERE|PANIC)|(WARN(?:ING)?))\b", re.IGNORECASE)
_LEVEL_CHARS = 200
_NO_TREE = "It is too large or not well formed enough for a tree. Ask with a JSON pointer or JMESPath."


class Node(Struct, frozen=True):
    """A value of a JSON document. `children` is None for one that has no parts."""

    key: str
    value: str = ""
    children: tuple[Node, ...] | None = None


class Rendered(Struct, frozen=True):
    form: Form
    kind: str
    tree: Node | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    page: Markup = Markup()
    note: str = ""


def find_form(kind: str, text: ShownText) -> Form:
    """How this kind of text can be rendered; empty if only as lines."""
    if kind in ("json", "ndjson"):
        return "tree"
    if kind == "csv":
        return "table"
    is_page = kind in ("prose", "description") and _HEADING.search(decode(text.reader.read(0, 16 << 10)))
    return "page" if is_page else ""


def render(text: ShownText) -> Rendered:
    kind = text.kind
    form = find_form(kind, text)
    data = text.reader.read(0, MAX_RENDERED_BYTES)
    left = text.view.bytes - len(data)
    note = f"Only the first {len(data):,} of {text.view.bytes:,} bytes are rendered. The rest is in the text." if left else ""
    match form:
        case "tree":
            return _render_json(kind, data, note)
        case "table":
            return Rendered("table", kind, rows=tuple(_read_rows(data, is_whole=not left)), note=note)
        case "page":
            return Rendered("page", kind, page=render_markdown(decode(data)), note=note)
        case "":
            return Rendered("", kind)


def classify_line(kind: str, line: str) -> str:
    """The class of a line of a diff or a log."""
    if kind == "diff":
        return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
    if kind == "log" and (found := _LEVEL.search(line, 0, _LEVEL_CHARS)):
        return "level-error" if found[1] else "level-warn"
    return ""


def render_markdown(text: str) -> Markup:
    """Without HTML, links and images of its own: what it links to is shown as text, and nothing is loaded."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20}).enable("table")
    parser.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])
    return Markup(parser.render(escape_invisible(text)))  # noqa: S704  # the parser escapes whatever it does not make itself


def _render_json(kind: str, data: bytes, note: str) -> Rendered:
    try:
        if kind == "ndjson":
            lines = data.splitlines() if not note else data.splitlines()[:-1]
            value: Any = [msgspec.json.decode(line) for line in lines[:MAX_NODES] if line.strip()]
        else:
            value = msgspec.json.decode(data)
        budget = [MAX_NODES]
        tree = _make_node("", value, budget, 0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Rendered(
            "", kind, note="It is too large or not well formed enough for a tree. Ask with a JSON pointer or JMESPath."
        )
    if budget[0] <= 0:
        note = f"The tree shows its first {MAX_NODES:,} values. Ask with a JSON pointer or JMESPath for others."
    return Rendered("tree", kind, tree=tree, note=note)


def _make_node(key: str, value: Any, budget: list[int], depth: int) -> Node:
    budget[0] -= 1
    key = shorten(key, MAX_CELL_CHARS)
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        members = cast("dict[str, Any]", value)
        return Node(key, f"{{{len(members)}}}", tuple(_children(members.items(), budget, depth)))
    if isinstance(value, list) and depth < _MAX_DEPTH:
        items = cast("list[Any]", value)
        return Node(key, f"[{len(items)}]", tuple(_children(enumerate(items), budget, depth)))
    return Node(key, shorten(decode(msgspec.json.encode(value)), MAX_CELL_CHARS * 4))


def _children(items: Iterable[tuple[str | int, Any]], budget: list[int], depth: int) -> Iterator[Node]:
    for key, value in items:
        if budget[0] <= 0:
            return
        yield _make_node(str(key), value, budget, depth + 1)


def _read_rows(data: bytes, *, is_whole: bool) -> Iterator[tuple[str, ...]]:
    lines = decode(data).splitlines()
    if not is_whole:
        lines = lines[:-1]
    separator = find_delimiter(lines[:MAX_ROWS]) or ","
    rows = csv.reader((line.replace("\0", "") for line in lines), delimiter=separator)
    try:
        for row, _ in zip(rows, range(MAX_ROWS), strict=False):
            yield tuple(shorten(cell, MAX_CELL_CHARS) for cell in row[:MAX_COLUMNS])
    except csv.Error:  # a cell that is longer than any table has
        return
