"""What a model reads about SQL."""

from __future__ import annotations

from overspill.text.humanize import count_noun

STILL_LOADING = "The tables are still being loaded, which takes longer than a call may. Send the same call again."
SQL_REQUIRED = "SQL needs `query`: one SELECT over the table `output`."


def sql_rows(total: int, shown: int, stored: int, name: str) -> str:
    """`name` is the output that has the first `stored` rows, if not all are shown."""
    counted = count_noun(total, "row")
    if shown == total:
        return f"[{counted}]"
    which = "All" if stored == total else f"The first {stored:,}"
    where = f' {which} are stored as {name}, which mode="sql" can query.' if name else ""
    return f"[{counted}, of which the first {shown:,} are shown.{where}]"


def sql_columns(total: int, shown: int) -> str:
    return f"[{count_noun(total, 'column')}, of which the first {shown:,} are named.]"


def no_table(kind: str) -> str:
    if kind == "empty":
        return "There is no table: the output is empty."
    return f'There is no table in this output: it was read as {kind}. Use mode="grep" or mode="extract".'
