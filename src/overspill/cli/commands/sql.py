"""`overspill sql`: query files as tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size

import click
from msgspec import Raw
from msgspec.json import format as compact

from overspill.cli import output
from overspill.cli.terminal import inform, on_terminal, warn
from overspill.errors import BadRequest
from overspill.sql.answers import read_answer, spell_cell
from overspill.sql.files import name_tables, open_file, open_stream
from overspill.sql.library import QueryResult, Source, SqlLibrary
from overspill.text.humanize import count_noun, escape_invisible
from overspill.wording import retrieval as wording

_MIN_CHARS_OF_A_COLUMN = 8
"""In narrower columns, cells would be hard to read."""


@click.command()
@click.argument("statement")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@output.json_options("Print JSON: a list of rows.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=10,
    metavar="SECONDS",
    show_default=True,
    help="How long the query may take.",
)
def sql(statement: str, files: tuple[Path, ...], as_json: bool, as_lines: bool, timeout: float) -> None:
    """Run one SQL STATEMENT over the tables in FILES, or in standard input.

    \b
    overspill sql "SELECT status, count(*) FROM orders GROUP BY 1" orders.json
    overspill sql "SELECT * FROM orders JOIN users ON users.id = user_id" orders.csv users.ndjson
    kubectl get pods | overspill sql "SELECT name FROM input WHERE restarts > 3"

    A table is named after its file, without the ending; standard input is `input`. JSON, lines of JSON, CSV, XML, aligned
    columns, Markdown and HTML tables, logs and `git log` are tables. "SHOW TABLES" lists them, "DESCRIBE orders" shows the
    columns of one. A file may be compressed.

    The SQL is DuckDB's. Only reading is possible, and only from these files. In a pipe, cells are separated by tabs.
    The exit code is 1 if the result is too large to print all of it.
    """
    chosen = list(files) or [Path("-")]
    if sum(str(file) == "-" for file in chosen) > 1:
        raise click.UsageError("Standard input can be read only once.")
    with SqlLibrary() as library:
        sources = _open(chosen)
        found = library.query(statement, sources, timeout)
    for name, source in sources.items():
        if found.loaded[name].kind == "empty":
            raise BadRequest(f"{source.label} is empty.")
        if not found.loaded[name].tables:
            advice = f"`{output.program()} extract` searches text."
            raise BadRequest(f"{source.label} has no table (it was read as {found.loaded[name].kind}). {advice}")
    _print(found, as_json=as_json or as_lines, as_lines=as_lines)


def _open(files: list[Path]) -> Mapping[str, Source]:
    sources: dict[str, Source] = {}
    for number, (name, file) in enumerate(zip(name_tables(files), files, strict=True)):
        key = f"file{number}"
        source, decoding = open_stream(output.standard_input("Reading"), key) if str(file) == "-" else open_file(file, key)
        if decoding.formats:
            inform(wording.decoding(decoding))
        for remark in decoding.remarks:
            warn(remark)
        sources[name] = source
    return sources


def _print(found: QueryResult, *, as_json: bool, as_lines: bool) -> None:
    answer = read_answer(found)
    for note in found.notes:
        warn(note)
    if as_json:
        output.print_records((Raw(compact(line, indent=-1)) for line in found.lines.splitlines()), as_lines=as_lines)
    elif on_terminal() and len(answer.columns) * _MIN_CHARS_OF_A_COLUMN <= get_terminal_size().columns:
        from overspill.cli.tables import print_table  # Rich takes long to import

        columns = zip(answer.columns, zip(*answer.rows, strict=True), strict=False)
        numbers = [name for name, cells in columns if all(isinstance(cell, int | float | None) for cell in cells)]
        rows = [[*map(spell_cell, row)] for row in answer.rows]
        print_table(count_noun(answer.total, "row"), answer.columns, rows, numbers=numbers)
    else:
        click.echo(escape_invisible(answer.text) if on_terminal() else answer.text)
    if len(answer.rows) < answer.total:
        warn(f"The result has {answer.total:,} rows, of which {len(answer.rows):,} are printed. Select fewer rows or columns.")
        sys.exit(1)
