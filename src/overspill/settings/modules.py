"""Import what a user names: a module, or a file that ends with .py."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from overspill.errors import SettingsError


def load_module(source: str, use: str = "") -> ModuleType:
    """`use` follows the name in the error. Each import has a new name, because files in different folders may share theirs."""
    try:
        if not source.endswith(".py"):
            return importlib.import_module(source)
        path = Path(source).expanduser().resolve()
        name = f"overspill_functions.{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look up their module in `sys.modules`
        spec.loader.exec_module(module)
    except Exception as error:  # importing runs the user's code
        raise SettingsError(f"Could not import {source}{use} ({type(error).__name__}: {error}).") from error
    return module
