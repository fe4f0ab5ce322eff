"""What real commands print. `NAME.json` is made from the source of each output: its values, the same query as CSV, or the same
command as JSON."""

from __future__ import annotations

import json
from pathlib import Path

OUTPUTS = Path(__file__).parent / "unit/tables/outputs"
NAMES = (
    *("apache-access", "df-h", "docker-ps", "dpkg-l", "duckdb", "free", "kubectl-get-pods", "ls-full-iso", "ls-l", "ls-long-iso"),
    *("lsblk", "mount", "mysql", "netstat-tan", "nginx-access", "pip-list", "ps-aux", "psql", "sqlite-box", "sqlite-column"),
    *("sqlite-markdown", "sqlite-table", "ss-tan", "vmstat"),
)


def read_output(name: str) -> tuple[bytes, list[str], list[list[str]], int]:
    """Its text, and what its source says: the names of its columns, its rows, and how many it does not show."""
    (table,) = json.loads((OUTPUTS / f"{name}.json").read_text())
    return (OUTPUTS / f"{name}.txt").read_bytes(), table["names"], table["rows"], table.get("omitted", 0)
