"""Loads tables or runs a query in a process that can open nothing else. `library.py` runs it by its path."""

from __future__ import annotations

import os
import sys
from importlib import import_module


def main() -> None:
    task, sys.path[:] = sys.argv[1], sys.argv[2:]
    import_module("overspill.confined.limits").end_with_reader()
    module = import_module("overspill.sql.loading" if task == "load" else "overspill.sql.querying")
    module.main(sys.stdin.buffer, sys.stdout.buffer)
    sys.stdout.flush()
    os._exit(0)  # even if threads of the libraries still run


if __name__ == "__main__":
    main()
