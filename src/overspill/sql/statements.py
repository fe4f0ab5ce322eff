"""Decides which statements may run: only those whose every part is known to do nothing but read the loaded tables.

DuckDB calls a statement a SELECT even if part of it writes files. We therefore walk its tree and refuse everything not named
here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from typing import Any, cast

from overspill.sql.duck import duckdb
from overspill.text.humanize import one_line, quote_line
from overspill.text.regex import regex


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EXPRESSIONS = _names(
    "BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION LAMBDA LAMBDA_REF OPERATOR PARAMETER "
    "POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW"
)
_PARTS = _names(
    "SELECT_NODE SET_OPERATION_NODE CTE_NODE RECURSIVE_CTE_NODE EMPTY EXPRESSION_LIST JOIN PIVOT SHOW_REF SUBQUERY "
    "DISTINCT_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER ORDER_MODIFIER ASCENDING DESCENDING ORDER_DEFAULT"
)
_TABLE_FUNCTIONS = _names(
    "duckdb_columns duckdb_functions duckdb_tables generate_series generate_subscripts json_each json_tree pragma_table_info "
    "range repeat repeat_row unnest"
)
_REFUSED_FUNCTIONS = _names("current_setting getenv json_serialize_plan write_log")
"""Scalar functions that reveal details of the process, plan another statement, or write."""
_LISTS = _names('"databases" "schemas" "tables" __show_tables_expanded')
"""What SHOW lists, as DuckDB spells it in a tree."""
_CATALOG = frozenset((("information_schema", "columns"), ("information_schema", "tables")))
_OUR_SCHEMAS = frozenset(((), ("main",), ("memory",), ("memory", "main"), ("recurring",)))
"""DuckDB's schema for the rows that a recursive query has found so far is `recurring`."""
_GIVE_ONE = "Give one statement."
_BEHIND_THE_ERROR = regex('\n\nLINE |, due to the following Python exception| Use "SET ')
"""What follows an error: the statement again, the place in our own files where a package is missing, or useless advice."""
_MAX_DEPTH = 10_000
"""The maximum depth of a tree. DuckDB nests expressions up to 1,000 deep, and writes several levels for each."""


def quote(text: str) -> str:
    """Quotes a string for SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_error(text: str) -> str:
    """DuckDB's reason, without what follows it."""
    return quote_line(_BEHIND_THE_ERROR.split(text)[0])


class Refused(Exception):
    """The statement does more than read."""


def check_statement(connection: Any, sql: str, tables: Collection[str]) -> None:
    """Raises Refused if the statement may not run. `tables` are the tables that it may read."""
    nodes = list(_walk(_parse(connection, sql)))
    named = {entry["key"].lower() for node in nodes if "cte_map" in node for entry in node["cte_map"]["map"]}
    if named:  # where a WITH clause's table is out of scope, DuckDB would use its own view of that name
        views = "SELECT view_name FROM duckdb_views() WHERE internal AND schema_name <> 'information_schema'"
        named -= {name.lower() for (name,) in connection.execute(views).fetchall()}
    known = {name.lower() for name in tables} | named
    for node in nodes:
        _check_node(node, known)


def _parse(connection: Any, sql: str) -> Any:
    sys.setrecursionlimit(_MAX_DEPTH)
    (text,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    try:
        tree = json.loads(text)
    except RecursionError:
        raise Refused("The statement is nested too deeply.") from None
    if tree["error"]:  # without a tree, it is not a statement, or not a SELECT
        if tree["error_type"] == "out of memory":
            raise MemoryError
        if tree["error_type"] != "not implemented":
            raise Refused(quote_error(tree["error_message"]))
        try:
            kinds = [statement.type.name for statement in connection.extract_statements(sql)]
        except (duckdb.Error, ValueError):
            # It looks for files named in the statement, and its types lack the names of some kinds.
            kinds = ["This statement"]
        raise _not_possible(kinds[0]) if len(kinds) == 1 else Refused(_GIVE_ONE)
    if len(tree["statements"]) != 1:
        raise Refused(_GIVE_ONE if tree["statements"] else "There is no statement.")
    return tree["statements"]


def _walk(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield (node := cast("dict[str, Any]", part))
            waiting += node.values()
        elif isinstance(part, list):
            waiting += cast("list[Any]", part)


def _check_node(node: dict[str, Any], known: Collection[str]) -> None:
    match node:
        case {"class": kind} if kind not in _EXPRESSIONS:
            raise _not_possible(kind)
        case {"class": _, "function_name": name} if name.lower() in _REFUSED_FUNCTIONS:
            raise _no_function(name)
        case {"class": _}:
            pass
        case {"type": "TABLE_FUNCTION", "function": {"function_name": name}} if name.lower() in _TABLE_FUNCTIONS:
            pass
        case {"type": "TABLE_FUNCTION"}:
            raise _no_function(node["function"].get("function_name", ""))
        case {"type": "BASE_TABLE"}:
            _check_table(node, known)
        case {"type": "SHOW_REF", "table_name": name} if name and name not in _LISTS:
            _check_table(node, known)
        case {"type": str(kind)} if kind not in _PARTS and not kind.endswith("_TYPE_INFO"):
            raise _not_possible(kind)
        case _:
            pass


def _check_table(node: dict[str, Any], known: Collection[str]) -> None:
    parts = [node.get("catalog_name", ""), node.get("schema_name", ""), node["table_name"]]
    path = [part.lower() for part in node.get("qualified_name", {}).get("path", parts) if part]
    is_ours = tuple(path[:-1]) in _OUR_SCHEMAS and path[-1] in known
    if not is_ours and tuple(path) not in _CATALOG:
        raise Refused(f"The table {one_line('.'.join(path))!r} does not exist.")


def _not_possible(kind: str) -> Refused:
    return Refused(f"{kind.partition('_')[0]} is not possible here: use SELECT, WITH, VALUES, DESCRIBE, SHOW or SUMMARIZE.")


def _no_function(name: str) -> Refused:
    return Refused(f"The function {one_line(name)!r} is not possible here: a statement reads only the loaded tables.")
