"""Where an adapter has to be named: whoever adds one and forgets a place is told here."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.integrations.abilities import CANNOT

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "src/overspill/integrations"


def find_adapters() -> list[str]:
    """The modules that no other one imports, but `functions`, which serves programs without a framework."""
    texts = {path.stem: path.read_text("utf-8") for path in FOLDER.rglob("*.py")}
    names = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "functions"}
    return sorted(name for name in names if not any(f"overspill.integrations.{name} import" in text for text in texts.values()))


def read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def title_of(page: str) -> str:
    """As the table of all adapters has it."""
    found = re.search(rf"\| \[([^]]+)\]\({re.escape(page)}\) \|", read("docs/integrations.md"))
    assert found, f"docs/integrations.md has no row for {page}"
    return found[1]


def test_there_are_as_many_adapters_as_the_suite_knows():
    assert find_adapters() == sorted(CANNOT)


@pytest.mark.parametrize("adapter", find_adapters())
def test_an_adapter_is_named_wherever_it_has_to_be(adapter: str):
    page = f"integrations-{adapter.replace('_', '-')}.md"
    wanted = [
        f"tests/integrations/drivers/{adapter}.py",
        f"tests/integrations/environments/{adapter}.in",
        f"tests/integrations/environments/{adapter}.lock",
        f"benchmarks/frameworks/idle_hooks/{adapter}.py",
        f"docs/{page}",
    ]
    assert [path for path in wanted if not (ROOT / path).is_file()] == []
    omitted = tomllib.loads(read("pyproject.toml"))["tool"]["coverage"]["report"]["omit"]
    assert f"src/overspill/integrations/{adapter}.py" in omitted
    assert f"({page})" in read("docs/index.md")
    assert title_of(page).lower() in " ".join(read("README.md").lower().split())
    assert f"overspill.integrations.{adapter} import" in read(f"docs/{page}")


@pytest.mark.parametrize("adapter", find_adapters())
def test_an_adapter_names_itself_and_the_package_that_it_needs(adapter: str):
    tree = ast.parse((FOLDER / f"{adapter}.py").read_text("utf-8"))
    (missing,) = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_missing(node)]
    name, needs = map(ast.literal_eval, missing.args)
    assert name == adapter
    assert needs.partition(">=")[0] in read(f"tests/integrations/environments/{adapter}.in")


def is_missing(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "MissingFramework"
