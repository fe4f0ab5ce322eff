"""The official servers, clients and the conformance suite, from the registries, in a folder outside the repository.

Nothing of this is a dependency of Overspill. Each home is filled once, by whoever comes first.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

NPM = {
    "node": "22.23.3",  # the suite needs 22, and a machine that has npm may have less
    "@modelcontextprotocol/conformance": "0.1.16",
    "conformance-next": "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",  # the first that knows the stateless protocol
    "@modelcontextprotocol/sdk": "1.32.2",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
}
INSPECTOR = {"node": NPM["node"], "@modelcontextprotocol/inspector": "2.12.0"}
CODING_AGENTS = {"node": NPM["node"], "@anthropic-ai/claude-code": "2.1.325", "@google/gemini-cli": "0.61.0"}
CODE_MODE = {
    "node": NPM["node"],
    "@openai/codex": "0.169.0",
    "@cloudflare/codemode": "0.5.6",
    "@ai-sdk/mcp": "1.0.101",
    "ai": "6.0.326",
    "zod": "4.6.7",
}
EXT_TASKS = {"node": NPM["node"], "@modelcontextprotocol/ext-tasks": "0.2.2", "@modelcontextprotocol/client": "2.4.0"}
AZURITE = {"azurite": "3.33.0"}  # the last that does not bring 200 MB of packages that report to its maker
MCPB = {"@anthropic-ai/mcpb": "2.1.2"}
PYTHON = {
    "mcp-2.3": ("mcp==2.3.0", "mcp-server-git==2026.10.19", "mcp-server-fetch==2026.10.24", "mcp-server-time==2026.10.19"),
    "mcp-1.30": ("mcp==1.30.0", "mcp-server-git==2025.12.18", "mcp-server-fetch==2025.4.7", "mcp-server-time==2025.9.25"),
    "pydantic-ai": ("pydantic-ai-slim[mcp]==2.66.0",),
    "code-mode": ("fastmcp[code-mode]==4.1.2", "pydantic-ai-harness[codemode]==0.62.0", "pydantic-ai-slim[mcp]==2.62.0"),
    "langchain": ("langchain-mcp-adapters==0.3.2", "langchain-core==1.7.2", "mcp==1.30.0"),
    "collector": ("rotel==0.0.1a15", "opentelemetry-distro==0.66b1", "opentelemetry-exporter-otlp-proto-http==1.45.1"),
    "duckdb-lowest": ("duckdb==1.3.0",),  # the lowest that `pyproject.toml` allows
    "fastmcp-tasks": ("fastmcp-slim[client,server]==4.1.2", "fastmcp-tasks==4.1.2"),
    "mcp-1.1": ("mcp==1.1.3", "mcp-server-git==0.6.2", "mcp-server-time==0.6.2"),
}
CONFIGURED = ("PIP_", "UV_", "HTTP", "http", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SSL_", "REQUESTS_", "CURL_CA")
"""How the names begin of what package managers need to reach their packages."""
_LONGEST = 600  # seconds
_NEEDED_BY_SCRIPTS = ("bash", "cat", "cksum", "dirname", "env", "grep", "readlink", "rm")


class Unavailable(Exception):
    """The packages cannot be had here; the text says why."""


def path_without_uv(folder: Path) -> str:
    """The PATH of somebody who has Python and what every system has. Made in this folder."""
    folder.mkdir()
    for name in _NEEDED_BY_SCRIPTS:
        (folder / name).symlink_to(str(shutil.which(name)))
    python = folder / "python3"  # not a link: a virtual environment would take the folder for Python's own
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys._base_executable)} "$@"\n')  # pyright: ignore
    python.chmod(0o755)
    return str(folder)


def npm_home(name: str = "npm", pins: Mapping[str, str] = NPM) -> Path:
    """A folder with `node_modules` in it."""

    def fill(home: Path) -> None:
        (home / "package.json").write_text(json.dumps({"private": True, "dependencies": pins}))
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable("npm is not installed")
        _run([npm, "install", "--prefix", home, "--no-audit", "--no-fund", "--loglevel=error"])

    return _filled(name, [f"{package}@{version}" for package, version in pins.items()], fill)


def python_home(name: str) -> Path:
    """An environment of its own, since each SDK wants to be the only one."""

    def fill(home: Path) -> None:
        _run([sys.executable, "-m", "venv", "--clear", home])
        uv = shutil.which("uv")
        install = (
            [uv, "pip", "install", "--python", home / "bin" / "python", "--compile-bytecode"]
            if uv
            else [home / "bin" / "pip", "install"]
        )
        _run([*install, "--quiet", *PYTHON[name]])

    return _filled(name, PYTHON[name], fill)


def _filled(name: str, pins: Sequence[str], fill: Callable[[Path], None]) -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / "overspill-tests"
    home, stamp = cache / name, cache / f"{name}.pins"
    wanted = "\n".join(pins)
    if _text(stamp) == wanted:
        return home
    home.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _text(stamp) != wanted:
            fill(home)
            stamp.write_text(wanted)
    return home


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _run(command: Sequence[str | Path]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LONGEST, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise Unavailable(f"{Path(command[0]).name} could not install: {said[-1] if said else error}") from error
