"""The lists of words are files of the package, read when a question first needs them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from overspill.lexical.index import build
from overspill.lexical.query import parse
from overspill.lexical.select import select
from overspill.lexical.words import read_lexicon, read_related

ROOT = Path(__file__).parents[3]
FOLDER = files("overspill.lexical") / "lexicon"


LISTS = sorted(entry.name.removesuffix(".txt") for entry in FOLDER.iterdir())
CODE = Path(str(FOLDER)).parent
SOURCE = "\n".join(path.read_text("utf-8") for folder in (CODE, CODE.parent / "tool_search") for path in folder.rglob("*.py"))
GROUPED = ("related", "keywords", "actions")  # whose lines are groups of words
WORD = re.compile(r"[a-z]{2,}")


def test_every_list_is_used() -> None:
    assert [name for name in LISTS if not re.search(rf"[\"'{{]{name}[\"'}}]", SOURCE)] == []


@pytest.mark.parametrize("name", LISTS)
def test_a_list_says_what_it_is_for_and_has_each_entry_once_in_lower_case(name: str) -> None:
    first, *lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
    assert first.startswith("# ")
    lines = [line for line in lines if not line.startswith("# ")]
    entries = lines if f"{{{name}}}" in SOURCE or name in GROUPED else " ".join(lines).split()
    assert len(set(entries)) == len(entries)
    assert entries == [entry if "\\" in entry else entry.lower() for entry in entries]
    assert entries


def test_code_has_no_lists_of_words() -> None:
    """Words that people use in questions are data."""
    listing = {
        f"{path.name}:{node.lineno}"
        for path in CODE.rglob("*.py")
        if path.parent.name not in ("kinds", "records")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Set | ast.List | ast.Tuple | ast.Call | ast.Constant) and _has_words(node)
    }
    assert listing == set()


def _has_words(node: ast.AST) -> bool:
    """Whether it is a collection of words, or a pattern for questions with a choice of many. Text is bytes."""
    if isinstance(node, ast.Constant):
        choices = re.findall(r"[a-z]+(?: [a-z]+)?(?:\|[a-z]+(?: [a-z]+)?){5,}", node.value) if isinstance(node.value, str) else []
        return bool(choices)
    elements = getattr(node, "elts", [])
    words = [each.value for each in elements if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return len(words) > 3 and len(words) == len(elements) and all(map(WORD.fullmatch, words))


def test_words_that_mean_nearly_the_same_lead_to_each_other() -> None:
    related = read_related()
    assert all(one in related[other] for one, others in related.items() for other in others)
    lines = (FOLDER / "related.txt").read_text("utf-8").splitlines()
    assert read_lexicon("stop").isdisjoint(word for line in lines if not line.startswith("#") for word in line.split())


def test_a_short_question_finds_an_answer_that_has_another_word() -> None:
    filler = "".join(f"<p>Stir the cream of the cupcakes {number} times.</p>\n" for number in range(100))
    page = f"<!DOCTYPE html><html><body><h1>Strawberry cupcakes</h1>{filler}<p>Author: Ann Low</p>{filler}</body></html>".encode()
    assert "Ann Low" in select(build(page), "Who wrote the cupcakes recipe?", max_tokens=100).text


def test_a_word_stands_in_for_one_that_is_nowhere_though_all_others_are_everywhere() -> None:
    filler = "".join(f"<p>Stir the cream {number} times.</p>\n" for number in range(100))
    page = f"<!DOCTYPE html><html><body><h1>Corn cakes</h1>{filler}<p>Author: Ann Low</p>{filler}</body></html>".encode()
    assert "Ann Low" in select(build(page), "Who wrote the corn cakes?", max_tokens=100).text


def test_a_long_question_needs_no_other_words() -> None:
    words = "wrote cupcakes strawberry cream sugar butter kitchen oven baking summer"
    assert "author" in {term.key for term in parse("Who wrote the cupcakes recipe?").terms}
    assert "author" not in {term.key for term in parse(f"Who {words}?").terms}


def test_importing_the_engine_reads_no_list() -> None:
    code = "import overspill.lexical, overspill.lexical.words as words; print(words.read_lexicon.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.slow
def test_a_wheel_has_the_lists(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {Path(name).name for name in wheel.namelist() if name.startswith("overspill/lexical/lexicon/")}
    assert packed == {entry.name for entry in FOLDER.iterdir()}


def test_the_halves_of_a_contraction_are_not_words_of_the_question() -> None:
    assert {term.key for term in parse("Why won't my pump start, and why doesn’t it stop?").terms if term.telling} == {
        "pump",
        "start",
        "stop",
    }
