"""What a question must hold to be in the set."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from benchmarks.questions.question import Entry, Question, normal

MIN_DOCUMENT_BYTES = 20_000  # smaller ones nearly fit into a budget
SMALL_BUDGET_CHARACTERS = 2_000
MAX_CHANCE = 0.15  # that a random excerpt of that length has the answer
MAX_OVERLAP = 0.85  # of the words of two questions about one document


def find_problem(entry: Entry) -> str | None:
    """Why the question cannot be used, or None."""
    question, text = entry.question, entry.text
    if len(text.encode("utf-8", "surrogatepass")) < MIN_DOCUMENT_BYTES:
        return "the document is too small"
    if not question.answers:
        return "it has no answer"
    if missing := [part for part in (*question.answers, *question.all_of) if part not in text]:
        return f"not in the document: {missing[0]!r}"
    asked = normal(question.question).casefold()
    if any(normal(answer).casefold() in asked for answer in question.answers):
        return "the question has the answer"
    if question.all_of and all(normal(part).casefold() in asked for part in question.all_of):
        return "the question has the answer"
    if chance(question, text) > MAX_CHANCE:
        return "a random excerpt would often have the answer"
    return None


def chance(question: Question, text: str) -> float:
    """About how likely an excerpt of the small budget has the answer without any search."""

    def share(parts: Iterable[str]) -> float:
        return min(1.0, sum(text.count(part) for part in parts) * SMALL_BUDGET_CHARACTERS / len(text))

    return min([share(question.answers), *(share([part]) for part in question.all_of)])


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def are_alike(one: Question, other: Question) -> bool:
    """Two questions about one document that ask the same."""
    if (one.answers, one.all_of) == (other.answers, other.all_of):
        return True
    left, right = words(one.question), words(other.question)
    return len(left & right) / max(1, len(left | right)) > MAX_OVERLAP


def drop_bad(entries: Iterable[Entry]) -> tuple[list[Entry], list[tuple[Entry, str]]]:
    """The entries that can be used, and the others with the reason."""
    good: list[Entry] = []
    bad: list[tuple[Entry, str]] = []
    kept: dict[str, list[Question]] = defaultdict(list)
    ids: set[str] = set()
    for entry in entries:
        question = entry.question
        problem = find_problem(entry)
        if not problem and question.id in ids:
            problem = "another question has its id"
        if not problem and any(are_alike(question, other) for other in kept[question.doc]):
            problem = "another question asks the same"
        if problem:
            bad.append((entry, problem))
            continue
        ids.add(question.id)
        kept[question.doc].append(question)
        good.append(entry)
    return good, bad
