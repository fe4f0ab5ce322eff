"""Nothing that a user can meet is left out of the documentation."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import overspill
from overspill import ContextBudget, OverspillError, Reply, Session, SyncSession
from overspill.cli import COMMANDS
from overspill.retrieval.definitions import TOOLS
from overspill.retrieval.output import StoredOutput
from overspill.settings import PRESETS
from overspill.truncate import STRATEGIES
from overspill.types import Extraction, Kept, Truncation

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def code(text: str) -> set[str]:
    """Every word that stands in code, inline or in a block."""
    pieces = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    return {word for piece in pieces for word in re.findall(r"\w+", piece)}


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


def own_errors() -> set[str]:
    for module in pkgutil.walk_packages(overspill.__path__, "overspill."):
        if module.name.count(".") == 1 or module.name == "overspill.models.protocol":
            importlib.import_module(module.name)
    found, waiting = {OverspillError}, [OverspillError]
    while waiting:
        below = [kind for kind in waiting.pop().__subclasses__() if kind.__module__.startswith("overspill.")]
        found.update(below)
        waiting.extend(below)
    return {kind.__name__ for kind in found}


@pytest.mark.parametrize("name", [path.stem for path in sorted(DOCS.glob("integrations-*.md")) if "sdks" not in path.stem])
def test_a_page_says_how_to_install_the_version_that_is_tested(name: str) -> None:
    environments = DOCS.parent / "tests" / "integrations" / "environments"
    file = environments / f"{name.removeprefix('integrations-').replace('-', '_')}.in"
    framework = file.read_text(encoding="utf-8").split()[0]
    (line,) = [line for line in page(f"{name}.md").splitlines() if line.startswith("pip install ")]
    assert f"'{framework}'" in re.sub(r"(pydantic-ai-slim)\[openai\]", r"\1", line)


def test_every_public_name_has_a_section() -> None:
    headings = set(re.findall(r"^## (\w+)$", page("python.md"), re.MULTILINE))
    assert set(overspill.__all__) <= headings


def test_the_table_of_names_has_every_public_name() -> None:
    assert set(re.findall(r"^\| \[`(\w+)`\]\(#", page("python.md"), re.MULTILINE)) == set(overspill.__all__)


def test_the_blocking_session_is_listed_with_all_it_has() -> None:
    section = page("python.md").split("\n## SyncSession\n")[1].split("\n## ")[0]
    assert public(SyncSession) - code(section) == set()


@pytest.mark.parametrize("method", ["call", "turn", "start", "invoke", "keep", "extract", "tools"])
def test_every_argument_of_a_session_is_in_its_signature(method: str) -> None:
    (shown,) = re.findall(rf"^(?:await )?session\.{method}\((.*)\) -> ", page("python.md"), re.MULTILINE)
    assert [each for each in inspect.signature(getattr(Session, method)).parameters if each != "self"] == [
        each.split("=")[0].strip() for each in shown.split(", ") if each != "*"
    ]


@pytest.mark.parametrize("kind", [Session, SyncSession, ContextBudget, StoredOutput])
def test_every_public_method_is_shown(kind: type) -> None:
    assert public(kind) - code(page("python.md")) == set()


@pytest.mark.parametrize("noun", [Reply, Kept, Extraction])
def test_every_field_of_an_answer_is_explained(noun: type) -> None:
    assert set(noun.__struct_fields__) - code(page("python.md")) == set()


def test_every_field_of_a_truncation_is_explained() -> None:
    assert set(Truncation.__struct_fields__) - code(page("truncation.md")) == set()


def test_every_error_is_explained() -> None:
    assert own_errors() - code(page("errors.md")) == set()


@pytest.mark.parametrize("tool", TOOLS)
def test_every_argument_of_a_retrieval_tool_is_explained(tool: str) -> None:
    section = page("retrieval.md").split(f"\n## {tool}\n")[1].split("\n## ")[0]
    assert set(TOOLS[tool].parameters["properties"]) - code(section) == set()


def test_every_strategy_has_a_section() -> None:
    assert set(STRATEGIES) <= set(re.findall(r"^### (\w+)$", page("truncation.md"), re.MULTILINE))


def test_every_preset_is_explained() -> None:
    assert set(PRESETS) <= code(page("concepts.md"))


def test_every_command_has_a_section() -> None:
    assert set(COMMANDS) <= set(re.findall(r"^## overspill (\w+)$", page("commands.md"), re.MULTILINE))


NAMES = sorted(
    {(page.name, name) for page in DOCS.rglob("*.md") for name in re.findall(r"`(overspill\.[\w.]+\w)", page.read_text("utf-8"))}
)


@pytest.mark.parametrize(("where", "name"), NAMES, ids=lambda each: each)
def test_a_dotted_name_of_the_documentation_can_be_imported(where: str, name: str) -> None:
    pkgutil.resolve_name(name)
