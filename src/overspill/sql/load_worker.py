"""Finds the tables in a source and writes them to a DuckDB file, in a separate process. Run by its path; see `library.py`."""

from __future__ import annotations

import os
import sys
from importlib import import_module


def main() -> None:
    sys.path[:] = sys.argv[1:]
    import_module("overspill.confined.limits").end_with_reader()
    import_module("overspill.sql.loading").main(sys.stdin.buffer, sys.stdout.buffer)
    sys.stdout.flush()
    os._exit(0)  # whatever the libraries' threads do


if __name__ == "__main__":
    main()
