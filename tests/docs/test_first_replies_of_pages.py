"""The pages about frameworks say that the model sees what matches the question. With their own tool and question, it does."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from overspill import Settings, SyncSession, ToolCall
from overspill.store.memory import MemoryStore

DOCS = Path(__file__).parents[2] / "docs"
_CLAIM = re.compile(r"shows the model what matches the (?:question|prompt)")
_FENCE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page.name for page in sorted(DOCS.glob("integrations-*.md")) if _CLAIM.search(page.read_text("utf-8"))]


def read_program(page: str) -> tuple[str, str]:
    """What the page's tool returns, without the framework, and the page's question."""
    source = next(block for block in _FENCE.findall((DOCS / page).read_text("utf-8")) if "def read_log" in block)
    tree = ast.parse(source)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    tool = next(node for node in functions if node.name == "read_log")
    tool.decorator_list.clear()
    namespace: dict[str, Any] = {}
    exec(compile(ast.Module([tool], []), page, "exec"), namespace)  # noqa: S102
    read, day = namespace["read_log"], "2026-11-16"
    result = anyio.run(read, {"day": day}) if inspect.iscoroutinefunction(read) else read(day)
    (question,) = {text for text in re.findall(r'"([^"\n]*\?)"', source) if day in text}
    return result if isinstance(result, str) else result["content"][0]["text"], question


def reply_to(page: str) -> str:
    log, question = read_program(page)
    messages = [{"role": "user", "content": question}]
    with SyncSession(Settings(asyncTimeoutSecs=300), store=MemoryStore()) as session:  # slowness is another page's matter
        (reply,) = session.turn([ToolCall("1", "read_log", {"day": "2026-11-16"})], lambda call: log, messages=messages)
    return reply.text


@contextmanager
def keep_busy() -> Iterator[None]:
    """Every processor of this machine, twice."""
    with ExitStack() as stack:
        for _ in range(2 * (os.cpu_count() or 1)):
            spinning = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(spinning.kill)
        yield


def test_the_pages_are_found():
    assert len(PAGES) == 8


def test_the_model_sees_what_matches_the_question_of_a_page():
    assert "order 4711 was refused: card expired" in reply_to(PAGES[0])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_model_sees_it_with_every_page_also_on_a_busy_machine(page: str):
    with keep_busy():
        assert "order 4711 was refused: card expired" in reply_to(page)
