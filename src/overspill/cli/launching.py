"""The command with which a client starts Overspill."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from overspill import __version__
from overspill.errors import BadRequest, MissingPackage

_REQUIRED = ("mcp", "mcp_types")  # looked up but not imported, which would take a second
_INSTALL = (
    "Install it (`uv tool install 'overspill[mcp]'` or `pipx install 'overspill[mcp]'`), or give the command with --command."
)


def parse_launch(command: str | None) -> list[str]:
    if command is None:
        if not all(map(find_spec, _REQUIRED)):
            raise MissingPackage("The proxy", "mcp")
        return find_launch(os.environ)
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise BadRequest(f"--command {command}: {problem}.") from None
    if not words:
        raise BadRequest("--command is empty. Write the command that starts Overspill, e.g. --command overspill.")
    return words


def find_launch(environ: Mapping[str, str]) -> list[str]:
    """Return the full path of this program, as desktop clients do not have your shell's PATH. Links are not resolved, because
    they survive updates. Cleaning the cache of `uvx` removes programs in it, so for those, returns `uvx` with this version."""
    on_path = shutil.which("overspill")
    found = (Path(sys.argv[0]), Path(sys.executable).with_name("overspill"), *([Path(on_path)] if on_path else []))
    programs = [path.absolute() for path in found if path.name == "overspill" and os.path.isfile(path)]
    lasting = [path for path in programs if not _is_cached(path, environ)]
    if lasting:
        return [str(lasting[0])]
    if not programs:
        raise BadRequest("Cannot tell how a client should start Overspill. Give the command with --command.")
    uvx = shutil.which("uvx")
    if uvx and _is_release():
        return [uvx, "--from", f"overspill[mcp]=={__version__}", "overspill"]
    raise BadRequest(f"{programs[0]} is in a cache, so a client could not start it tomorrow. {_INSTALL}")


def _is_cached(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether a program is in a cache. The temporary directory is not one: you put a clone there yourself."""
    places = [environ.get(name, "") for name in ("UV_CACHE_DIR", "XDG_CACHE_HOME", "PIPX_SHARED_LIBS")]
    caches = [Path(place) for place in places if place]
    real = Path(os.path.realpath(path))
    inside = any(each.is_relative_to(cache) for cache in caches for each in (path, real))
    return inside or not {".cache", "Caches"}.isdisjoint((*path.parts, *real.parts))


def _is_release() -> bool:
    """Whether this version came from a package index and can come from there again."""
    try:
        return distribution("overspill").read_text("direct_url.json") is None
    except PackageNotFoundError:
        return False
