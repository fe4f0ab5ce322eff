"""What the documentation shows works.

The ```python blocks of a page run in order, in one namespace, with `await` at the top level; ```py blocks are fragments and do
not. A block marked ```text output is what the ```python block before it prints, or the one command in the ```sh block before it,
called in the repository; but for ids, which are never the same.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from inspect import CO_COROUTINE
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from forked import run as run_forked

from overspill.truncate import STRATEGIES

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CHANGING = (
    (re.compile(rf"session-{_UUID}/{_UUID}"), "session-…/…"),
    (re.compile(r"art_\d+_[0-9a-f]{19,}"), "art_…"),
    (re.compile(r"\bout_[0-9a-z]{6,12}\b"), "out_…"),
    (re.compile(r"((?:preview|passages|untrusted data) )\d{6,}"), r"\1…"),
)


class Block(NamedTuple):
    language: str
    note: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1) for found in _BLOCK.finditer(text)
    ]


def compiled(page: Path, block: Block) -> CodeType:
    tree = ast.increment_lineno(ast.parse(block.text), block.line)
    return compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def without_ids(printed: str) -> str:
    for pattern, replacement in _CHANGING:
        printed = pattern.sub(replacement, printed)
    return printed


def called(line: str, home: Path) -> str:
    program, *args = shlex.split(line)
    assert program == "scripts/overspill"
    done = run_forked(args, env={"HOME": str(home), "TMPDIR": str(home)}, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(page: Path, portal: BlockingPortal) -> None:
    """Blocks with an `await` run on the portal's one loop, others in this thread, where a program may start a loop of its own."""
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = io.StringIO()
    for block, following in pairwise([*blocks(page), Block("", "", "", 0)]):
        if block.language == "sh" and following.note == "output":
            printed = io.StringIO(called(block.text, Path.cwd()))
        elif block.language == "python":
            printed = io.StringIO()
            code = compiled(page, block)
            body = FunctionType(code, namespace)
            with redirect_stdout(printed):
                portal.call(body) if code.co_flags & CO_COROUTINE else body()
        elif block.note == "output":
            assert without_ids(printed.getvalue()) == block.text, f"{page.name}:{block.line}"


@pytest.fixture(autouse=True)
def strategies() -> Iterator[None]:
    """A page may add a strategy of its own; other tests must not find it."""
    before = dict(STRATEGIES)
    yield
    STRATEGIES.clear()
    STRATEGIES.update(before)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.language == "python" or block.note == "output" for block in blocks(page))],
    ids=lambda page: page.name,
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with start_blocking_portal() as portal:
        run(page, portal)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_code_is_closed(page: Path) -> None:
    fences = re.findall(r"^```.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page))


def test_the_way_in_is_shown_by_a_program_that_runs_as_it_is() -> None:
    (program,) = [block.text for block in blocks(ROOT / "README.md") if block.language == "python"]
    compile(program, "README.md", "exec")


def list_imported(text: str) -> Iterator[tuple[str, str]]:
    """The module and the name of each thing of ours that a fragment imports. It may be no whole program."""
    for line in re.findall(r"^\s*(from overspill\S* import [\w, ]+)", text, re.MULTILINE):
        for statement in ast.parse(line).body:
            assert isinstance(statement, ast.ImportFrom)
            yield from ((str(statement.module), alias.name) for alias in statement.names)


def is_defined(module: str, name: str) -> bool:
    if module.startswith("overspill.integrations."):  # needs its framework, so read what it defines
        source = (ROOT / "src" / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
        return any(getattr(node, "name", "") == name for node in ast.parse(source).body)
    return hasattr(import_module(module), name)


FRAGMENTS = [
    pytest.param(block, id=f"{page.name}:{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.language == "py" and any(list_imported(block.text))
]


@pytest.mark.parametrize("block", FRAGMENTS)
def test_what_a_fragment_imports_is_there(block: Block):
    assert [pair for pair in list_imported(block.text) if not is_defined(*pair)] == []
