"""Clients of older SDKs, of another language and of a framework, directly and through `overspill proxy`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from extras import OFFERED
from large import LARGE
from official import Node
from running import TOKEN, Overspill, plain_environ, running

pytestmark = pytest.mark.slow

CLIENTS = Path(__file__).parent / "clients"
STRUCTURED = Path(__file__).parent.parent / "servers" / "structured.py"
ADDED = OFFERED


async def told(command: Sequence[str], environ: Mapping[str, str]) -> Any:
    with anyio.fail_after(90):
        done = await anyio.run_process(command, env=environ, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize(("home", "version"), [("mcp-1.30", "2025-11-25"), ("mcp-1.1", "2024-11-05")])
async def test_a_client_of_an_older_python_sdk_reads_all_of_a_large_result(
    python: Callable[[str], Path], repository: Path, home: str, version: str, tmp_path: Path
) -> None:
    where = {"repo_path": str(repository)}
    calls = json.dumps([("git_status", where), ("git_diff_unstaged", where)])
    client = [str(python(home) / "python"), str(CLIENTS / "old_client.py"), calls]
    server, overspill = str(python("mcp-2.3") / "mcp-server-git"), Overspill(tmp_path)
    direct = await told([*client, server], plain_environ())
    through = await told([*client, *overspill.proxy("--", server)], overspill.environ)
    assert (direct["version"], direct["server"], direct["changed"]) == (version, "mcp-git", False)
    assert LARGE.splitlines()[-1] in direct["large"]
    assert through == {**direct, "tools": direct["tools"] + ADDED}


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_client_of_the_typescript_sdk_reads_all_of_a_large_result(node: Node, way: str, tmp_path: Path) -> None:
    folder = (tmp_path / "files").resolve()
    folder.mkdir()
    (folder / "large.txt").write_text(LARGE)
    file = {"path": str(folder / "large.txt")}
    calls = json.dumps([("read_text_file", {**file, "head": 2}), ("read_text_file", file)])
    client = [node.script("node")[0], str(CLIENTS / "typescript_client.mjs"), str(node.home), calls]
    server, overspill = node.filesystem(folder), Overspill(tmp_path)
    direct = await told([*client, *server], plain_environ())
    if way == "stdio":
        through = await told([*client, *overspill.proxy("--", *server)], overspill.environ)
    else:
        proxy = overspill.proxy("--http", "127.0.0.1:0", "--", *server)
        async with running(proxy, r"http://\S+", overspill.environ) as url:
            through = await told([*client, url, TOKEN], plain_environ())
    assert (direct["changed"], direct["large"]) == (False, LARGE)
    assert through == {**direct, "tools": direct["tools"] + ADDED}


async def test_a_model_of_pydantic_ai_is_shown_what_to_do_and_the_preview(python: Callable[[str], Path], tmp_path: Path) -> None:
    """Its client hands a model the structured content where all blocks are text, and that alone."""
    client = [str(python("pydantic-ai") / "python"), str(CLIENTS / "pydantic_ai_client.py")]
    overspill, server = Overspill(tmp_path), [sys.executable, str(STRUCTURED)]
    direct = await told([*client, json.dumps(["text"]), *server], plain_environ())
    assert "line 1000: the quick brown fox" in direct["text"]
    proxy = overspill.proxy("--set", "asyncTimeoutSecs=2", "--", *server)
    shown = await told([*client, json.dumps(["text", "page", "forever"]), *proxy], overspill.environ)
    for tool in ("text", "page"):
        assert "Next: get_tool_output(" in shown[tool]
        assert "line 1: the quick brown fox" in shown[tool]
    assert 'mode="wait"' in json.loads(shown["forever"])["overspill"]["message"]
