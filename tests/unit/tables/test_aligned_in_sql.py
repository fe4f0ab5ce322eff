"""SQL reads what real commands print as its source says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from command_outputs import NAMES, read_output
from extras import needs
from slow import every_fourth

from overspill.sql import loading
from overspill.sql.protocol import LoadRequest

pytestmark = needs("duckdb", "sql")


@pytest.mark.parametrize("name", every_fourth(NAMES))
def test_sql_has_the_same_table(name: str):
    text, names, rows, omitted = read_output(name)
    with TemporaryDirectory() as folder:
        source, work = Path(folder, "source"), Path(folder, "work")
        source.write_bytes(text)
        work.mkdir()
        database = f"{folder}/database"
        found = loading.load(LoadRequest(str(source), str(work), database))
        (table,) = found.tables
        assert (table.rows, table.bad_rows, str(omitted) in table.note) == (len(rows), 0, bool(omitted))
        assert [column.name for column in table.columns][1 : len(names) + 1] == names
        with loading.duckdb.connect(database) as connection:
            loaded = connection.execute('FROM output ORDER BY "_row"').fetchall()
    for row, cells in zip(loaded, rows, strict=True):
        assert all(is_same(value, cell) for value, cell in zip(row[1 : len(names) + 1], cells, strict=True)), (row, cells)


def is_same(value: Any, cell: str) -> bool:
    """Columns of numbers, times and flags are typed; their text says the same."""
    if value is None or isinstance(value, str):
        return (value or "") == cell
    if isinstance(value, bool):
        return str(value).lower() == cell
    return str(value) == cell if not isinstance(value, int | float) else float(cell) == value
