"""The command line: parsing and rendering only. Imports only what a proxy needs to start: a user has dozens of fronts."""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # importing it would cost each front more memory than all its own code
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from overspill.cli.program import COMMANDS, overspill

__all__ = ["COMMANDS", "main", "overspill"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    words = list(sys.argv[1:] if args is None else args)
    if words and words[0] in ("proxy", "serve"):
        from overspill.hub.front import serve_through_hub

        code = serve_through_hub(words, os.environ)
        if code is not None:
            sys.exit(code)
    import gc

    gc.disable()  # until the command is imported, because imports leave little garbage
    import_module("overspill.cli.program").main(args)
    raise AssertionError("the program exits by itself")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'overspill.cli' has no attribute {name!r}")
    return getattr(import_module("overspill.cli.program"), name)
