"""Foreign packages, fetched once. Where they cannot be had the tests are skipped and say why; on CI they fail."""

from __future__ import annotations

import faulthandler
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from large import LARGE
from official import Node
from packages import CODING_AGENTS, EXT_TASKS, INSPECTOR, Unavailable, npm_home, python_home

PythonHome: TypeAlias = Callable[[str], Path]


def _or_skip(get: Callable[[], Path]) -> Path:
    try:
        return get()
    except Unavailable as reason:
        if os.environ.get("CI"):
            pytest.fail(f"The official packages cannot be had: {reason}")
        pytest.skip(f"the official packages cannot be had: {reason}")


@pytest.fixture(scope="session")
def node() -> Node:
    return Node(_or_skip(npm_home))


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """The command of the MCP inspector without its web page."""
    home = Node(_or_skip(lambda: npm_home("inspector", INSPECTOR)))
    return home.script("@modelcontextprotocol/inspector", "--cli", file="clients/launcher/build/index.js")


@pytest.fixture(scope="session")
def coding_agents() -> Node:
    return Node(_or_skip(lambda: npm_home("coding-agents", CODING_AGENTS)))


@pytest.fixture(scope="session")
def ext_tasks() -> Node:
    return Node(_or_skip(lambda: npm_home("ext-tasks", EXT_TASKS)))


@pytest.fixture(scope="session")
def python() -> PythonHome:
    """The folder of commands of one of the environments in `packages.PYTHON`."""
    return lambda name: _or_skip(lambda: python_home(name)) / "bin"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit, and a large change that is not staged."""
    folder = tmp_path / "repository"
    file = folder / "text.txt"
    who = {f"GIT_{role}_{what}": "test@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environ = {**os.environ, **who, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, env=environ)  # noqa: S607

    folder.mkdir()
    git("init", "-q", "-b", "main")
    file.write_text("before\n")
    git("add", "text.txt")
    git("commit", "-qm", "Begin")
    file.write_text(LARGE)
    return folder


@pytest.fixture(autouse=True)
def _patience() -> None:
    """Fetching packages, and a whole suite on a busy machine, take longer than other tests may. Every wait here has an end."""
    faulthandler.cancel_dump_traceback_later()
