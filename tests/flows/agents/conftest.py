"""The MCP server of the agents' stories: one real process, over HTTP, for all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import Stage

SERVER = Path(__file__).parents[2] / "agent_server.py"


@pytest.fixture(scope="session")
def depot() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(SERVER), "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = (re.search(r"running on (http://[\d.:]+)", line) for line in process.stderr)
        try:
            yield next(f"{found[1]}/mcp" for found in said if found)
        finally:
            process.kill()


@pytest.fixture
def stage(tmp_path: Path, depot: str) -> Stage:
    return Stage(tmp_path, {"url": depot})
