"""DuckDB's compiled module. The rest of its package takes longer to import than most questions take."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb as duckdb
else:
    package, compiled = (getattr(find_spec(name), "origin", None) or "" for name in ("duckdb", "_duckdb"))
    # Older versions have it inside the package. If it is elsewhere, it may be another version's.
    is_beside = os.path.dirname(os.path.dirname(package)) == os.path.dirname(compiled)
    duckdb = import_module("_duckdb" if is_beside else "duckdb")
