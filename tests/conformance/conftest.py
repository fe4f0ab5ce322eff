"""Foreign packages, fetched once. Where they cannot be had the tests are skipped and say why; on CI they fail."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from official import Node
from packages import Unavailable, npm_home, python_home

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
def python() -> PythonHome:
    """The folder of commands of one of the environments in `packages.PYTHON`."""
    return lambda name: _or_skip(lambda: python_home(name)) / "bin"


@pytest.fixture
def anyio_backend() -> str:
    """Once is enough: what is tested here runs in processes of its own."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _patience() -> None:
    """Fetching packages, and a whole suite on a busy machine, take longer than other tests may. Every wait here has an end."""
    faulthandler.cancel_dump_traceback_later()
