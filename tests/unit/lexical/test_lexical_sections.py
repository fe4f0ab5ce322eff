"""What a thread or a function is about, each part of it is about."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select

TROUBLES = ("leak", "rust", "oven", "sails", "mast", "anchor", "rudder", "engine")
ADVICE = ("rag", "brush", "fuse", "needle", "glue", "chain", "bolt", "oil")
REST = "Here follow the usual remarks of this list, which are long and say nothing at all about anything in particular.\n\n" * 10
THREADS = "".join(
    f"Thread: Question {number}\n\nAnn Lee, 2010-01-0{number} 02:02:\n\nI have trouble with the {trouble}.\n\n"
    f"Bo Ray, 2010-01-0{number} 03:0{number}:\n\n{REST}For your boat, get some {advice}.\n\n"
    for number, (trouble, advice) in enumerate(zip(TROUBLES, ADVICE, strict=True), start=1)
)
ISSUES = "".join(
    f"Issue {number} (closed)\nTitle: The {trouble} of a boat\n\nann, 2010-01-0{number}T02:02:\n\nIt is bad again.\n\n"
    f"bo, 2010-01-0{number}T03:0{number}:\n\n{REST}Get some {advice}.\n\n\n"
    for number, (trouble, advice) in enumerate(zip(TROUBLES, ADVICE, strict=True), start=1)
)
STEP = "        self.total = self.total + self.count * self.factor - self.base\n"
CODE = "import os\n\n" + "".join(
    f"class Thing{number}:\n    def repair(self):\n        self.find('{trouble}')\n{STEP * 16}\n"
    f"        if self.boat:\n    {STEP}            self.get('{advice}')\n\n"
    for number, (trouble, advice) in enumerate(zip(TROUBLES, ADVICE, strict=True), start=1)
)


def test_an_answer_far_below_its_question_is_found_through_their_thread() -> None:
    index = build(THREADS.encode())
    assert index.kind == "messages"
    for trouble, advice in zip(TROUBLES, ADVICE, strict=True):
        shown = select(index, f"What should I get for the {trouble} of my boat?", max_tokens=75).text
        assert f"For your boat, get some {advice}." in shown


def test_an_answer_is_found_through_the_title_of_its_issue() -> None:
    index = build(ISSUES.encode())
    assert index.kind == "messages"
    for trouble, advice in zip(TROUBLES, ADVICE, strict=True):
        assert f"Get some {advice}." in select(index, f"What should I get for the {trouble}?", max_tokens=120).text


def test_a_line_at_the_end_of_a_function_is_found_through_its_beginning() -> None:
    index = build(CODE.encode())
    assert index.kind == "code"
    for trouble, advice in zip(TROUBLES, ADVICE, strict=True):
        shown = select(index, f"what is repaired with the {trouble} of a boat", max_tokens=200).text
        assert f"self.get('{advice}')" in shown


def test_what_is_only_beside_a_match_is_not_counted_as_one() -> None:
    assert select(build(THREADS.encode()), "rust").matched == 1
