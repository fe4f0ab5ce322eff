"""Which half a question is in: by its id, or together with its document."""

from __future__ import annotations

from collections import Counter

from benchmarks.questions.halves import divide, half
from benchmarks.questions.question import Kind, Question


def ask(kind: Kind, doc: str, number: int, source: str = "a/b") -> Question:
    return Question(f"{kind}-{doc}-{number}", kind, source, "MIT", doc, "Which port?", ("5432",))


def test_a_question_stays_in_its_half_for_ever() -> None:
    assert [half(f"code-{number}") for number in range(6)] == ["unseen", "unseen", "seen", "seen", "seen", "seen"]


def test_the_halves_are_about_equal() -> None:
    assert 450 < Counter(half(f"lists-{number}") for number in range(1000))["seen"] < 550


def test_split_by_question_only_the_id_counts() -> None:
    questions = [ask("lists", "one", number) for number in range(20)]
    assert divide(questions, "question") == {question.id: half(question.id) for question in questions}


def test_split_by_document_a_document_is_in_one_half_and_the_halves_of_a_kind_are_about_equal() -> None:
    documents = {f"docs/{name}": count for name, count in (("a", 9), ("b", 1), ("c", 5), ("d", 4), ("e", 2))}
    questions = [ask(kind, doc, number) for kind in ("lists", "threads") for doc in documents for number in range(documents[doc])]
    divided = divide(questions, "document")
    for kind in ("lists", "threads"):
        sides = {
            doc: {divided[question.id] for question in questions if (question.kind, question.doc) == (kind, doc)}
            for doc in documents
        }
        assert all(len(side) == 1 for side in sides.values())
        sizes = Counter(divided[question.id] for question in questions if question.kind == kind)
        assert abs(sizes["seen"] - sizes["unseen"]) <= 1


def test_code_of_one_repository_is_in_one_half_whatever_the_commit() -> None:
    questions = [ask("code", f"docs/{name}-{commit}", 0, name) for name in ("a/b", "c/d") for commit in range(4)]
    divided = divide(questions, "document")
    assert len({divided[question.id] for question in questions if question.source == "a/b"}) == 1
    assert Counter(divided.values()) == {"seen": 4, "unseen": 4}


def test_the_order_of_the_questions_does_not_decide() -> None:
    questions = [ask("lists", f"docs/{doc}", number) for doc in range(7) for number in range(doc % 3 + 1)]
    assert divide(questions, "document") == divide(questions[::-1], "document")
