"""A plain search over short stretches of text gives a second opinion on which records come first."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select
from overspill.lexical.signals import SIGNALS
from overspill.lexical.signals.windows import boost_windows

OTHERS = tuple(signal for signal in SIGNALS if signal is not boost_windows)


def write_issue(number: int, question: str, reply: str) -> str:
    heading = f"Issue {number} (closed)\nTitle: {question}\n\n"
    return f"{heading}ann, 2020-08-13T17:50:\n{question}\n\nbo, 2020-08-14T09:10:\n{reply}\n\n\n"


def list_issues() -> str:
    """What one issue asks is told by a reply of other words, and `Hello.cookie` is nowhere spelt so."""
    issues = [
        write_issue(number, f"Must label {number} be empty?", f"An empty label is what part {number} says, so leave it.")
        for number in range(80)
    ]
    issues[40] = write_issue(40, "Must a server read the cookie of a Hello?", "It should go on as if there were none.")
    return "".join(issues)


def test_an_answer_beside_the_words_of_a_question_is_shown():
    index = build(list_issues().encode())
    assert index.kind == "messages"
    question = "What if Hello.cookie is not empty?"
    assert "as if there were none" in select(index, question, max_tokens=200).text
    assert "as if there were none" not in select(index, question, max_tokens=200, signals=OTHERS).text


def test_many_lines_that_begin_a_thread_are_read():
    text = "ann, 2020-08-13T17:50:\nhello there\n\n" * 4 + "Title: a pump and its valve\n" * 2_000
    index = build(text.encode())
    assert index.kind == "messages"
    assert select(index, "pump valve", max_tokens=100).matched


def test_where_records_are_long_the_ranking_stays_as_it_is():
    clause = "The party of part {0} delivers what it owes by the day that is named, and pays for what is late. " * 5
    text = "\n\n".join(clause.format(number) for number in range(60))
    index, question = build(text.encode()), "Which party delivers late in part 17?"
    assert select(index, question, max_tokens=400).text == select(index, question, max_tokens=400, signals=OTHERS).text
