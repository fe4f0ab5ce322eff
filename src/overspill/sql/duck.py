"""DuckDB's compiled module. The rest of its package takes longer to import than most questions take."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb as duckdb


def _find_file(module: str) -> str:
    found = find_spec(module)
    return (found.origin or "") if found else ""


def _import_compiled() -> Any:
    """Older versions have it inside the package. If it is elsewhere, it may be another version's."""
    is_beside = os.path.dirname(_find_file("_duckdb")) == os.path.dirname(os.path.dirname(_find_file("duckdb")))
    return import_module("_duckdb" if is_beside else "duckdb")


if not TYPE_CHECKING:
    duckdb = _import_compiled()
