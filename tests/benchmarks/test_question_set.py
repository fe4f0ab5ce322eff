"""The question set: which half a question is in, what is left out, and what counts as recalled."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.questions.checks import are_alike, drop_bad, find_problem
from benchmarks.questions.picks import read_queries
from benchmarks.questions.question import Entry, Question, is_recalled, read_set, write_set
from benchmarks.questions.scoring import Result, mean_over_kinds, render, search_document

FILLER = "".join(f"line {number} says nothing of interest\n" for number in range(1000))
TEXT = FILLER + "the port is 5432\n" + FILLER
ROOT = Path(__file__).parents[2]

ASKED = Question(
    id="code-1", kind="code", source="a/b", licence="MIT", doc="docs/a.txt", question="Which port?", answers=("port is 5432",)
)


def test_a_good_question_has_no_problem() -> None:
    assert find_problem(Entry(ASKED, TEXT)) is None


@pytest.mark.parametrize(
    ("changes", "text", "problem"),
    [
        ({}, TEXT[-19_000:] + "port is 5432", "too small"),
        ({"answers": ()}, TEXT, "no answer"),
        ({"answers": ("port is 1",)}, TEXT, "not in the document"),
        ({"all_of": ("the host is",)}, TEXT, "not in the document"),
        ({"question": "Why is it that the Port  is 5432?"}, TEXT, "has the answer"),
        ({"question": "What of 5432?", "answers": ("port is 5432",), "all_of": ("5432",)}, TEXT, "has the answer"),
        ({"answers": ("nothing",)}, TEXT, "random excerpt"),
    ],
)
def test_what_cannot_be_asked_is_found(changes: dict[str, object], text: str, problem: str) -> None:
    assert problem in str(find_problem(Entry(replace(ASKED, **changes), text)))  # pyright: ignore[reportArgumentType]


def test_the_rarest_of_all_needed_parts_decides_how_likely_chance_is() -> None:
    entry = Entry(replace(ASKED, answers=("nothing",), all_of=("nothing", "5432")), TEXT)
    assert find_problem(entry) is None


def test_two_questions_about_one_document_that_ask_the_same_are_alike() -> None:
    other = replace(ASKED, id="code-2", question="On which port does the server of this company listen for its clients now?")
    assert are_alike(ASKED, other)
    assert not are_alike(ASKED, replace(other, answers=("says",)))
    assert are_alike(other, replace(other, question=other.question.replace("now", "today"), answers=("says",)))


def test_only_the_first_of_questions_alike_is_kept_and_the_reason_is_told() -> None:
    other = replace(ASKED, id="code-2")
    good, bad = drop_bad([Entry(ASKED, TEXT), Entry(other, TEXT), Entry(replace(other, doc="docs/b.txt"), TEXT)])
    assert [entry.question.doc for entry in good] == ["docs/a.txt", "docs/b.txt"]
    assert [(entry.question.id, problem) for entry, problem in bad] == [("code-2", "another question asks the same")]


def test_one_answer_and_every_needed_part_count_white_space_aside() -> None:
    question = replace(ASKED, answers=("a b", "c"), all_of=("d  e",))
    assert is_recalled(question, "a\n  b and \x1b[31md\ne\x1b[0m")
    assert not is_recalled(question, "a b")
    assert not is_recalled(question, "d e")


def test_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    second = replace(ASKED, id="code-0", doc="docs/b.txt", all_of=("5432", "é"))
    write_set(tmp_path, [Entry(ASKED, "one\r\n"), Entry(second, "zwei ü\n")], {"code-1": "seen", "code-0": "unseen"})
    assert read_set(tmp_path) == [second, ASKED]
    assert read_set(tmp_path, "seen") == [ASKED]
    assert read_set(tmp_path, "unseen") == [second]
    assert (tmp_path / "docs/a.txt").read_bytes() == b"one\r\n"


def test_full_text_search_is_scored_on_every_question_and_budget() -> None:
    results = search_document(TEXT, [ASKED, replace(ASKED, answers=("host",))], [100, 500])
    assert Counter((result.way, result.budget) for result in results) == {
        ("fts5 porter", 100): 2,
        ("fts5 porter", 500): 2,
        ("fts5 trigram", 100): 2,
        ("fts5 trigram", 500): 2,
    }
    assert [result.is_right for result in results if result.budget == 500] == [True, False] * 2
    assert all(result.characters <= result.budget * 4 for result in results)


def test_each_kind_counts_the_same_however_many_questions_it_has() -> None:
    lists = replace(ASKED, kind="lists")
    results = [Result(ASKED, "x", 500, True, 8)] * 3 + [Result(ASKED, "x", 500, False, 8), Result(lists, "x", 500, False, 4)]
    assert mean_over_kinds(results) == pytest.approx(37.5)
    assert render(results).splitlines() == [
        "| kind | n | x at 500 |",
        "|---|---|---|",
        "| code | 4 | 75.0 |",
        "| lists | 1 | 0.0 |",
        "| mean over kinds | | 37.5 |",
        "| tokens shown, mean | | 2 |",
    ]


def test_a_folder_without_a_set_is_told_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.questions", "score", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"No question set in {tmp_path}. Build one: python -m benchmarks.questions build {tmp_path}\n"


def test_a_mistyped_budget_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.questions", "score", str(tmp_path), "--budgets", "5oo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'5oo' is not a list of numbers such as 500,2000" in done.stderr


def test_questions_are_asked_with_what_a_model_wrote_for_them(tmp_path: Path) -> None:
    id, query = next(iter(read_queries("databases").items()))
    document = FILLER + f"{query}: gneiss\n" + FILLER
    written = replace(ASKED, id=id, question="Which stone?", answers=("gneiss",))
    write_set(tmp_path, [Entry(written, document), Entry(replace(ASKED, doc="docs/b.txt"), TEXT)], {id: "seen", "code-1": "seen"})
    command = [sys.executable, "-m", "benchmarks.questions", "score", str(tmp_path), "--budgets", "500", "--no-engine"]
    own = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    asked = subprocess.run([*command, "--queries", "databases"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "| code | 2 | 50.0 | 50.0 |" in own
    assert "| code | 1 | 100.0 | 100.0 |" in asked


def test_a_set_without_such_questions_is_told_in_one_line(tmp_path: Path) -> None:
    write_set(tmp_path, [Entry(ASKED, TEXT)], {"code-1": "seen"})
    command = [sys.executable, "-m", "benchmarks.questions", "score", str(tmp_path), "--queries", "databases"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"None of the questions in {tmp_path} has a query in the databases set.\n"
