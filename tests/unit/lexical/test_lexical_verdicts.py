"""A question that can be answered with yes or no is answered by a passage that begins so."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

FILLER = [
    f"The archive of store {number} keeps the data of each backup, and the archive itself is checked on the next day.\n\n"
    for number in range(120)
]
YES = "Yes, if you want to find damaged data early, start with the longer of the two commands below."
QUESTION = "Can it verify the data of a backup archive?"


def show(passage: str, question: str) -> str:
    index = build("".join([*FILLER[:60], passage + "\n\n", *FILLER[60:]]).encode())
    assert index.kind == "prose"
    return select(index, question, max_tokens=120).text


@pytest.mark.parametrize(
    "passage",
    [
        YES,
        "**Answer:** No, the data of several days may be read in any other way that you like, as shown below.",
        "Unfortunately not: data of that sort are found only after some days, as people say who have tried.",
    ],
)
def test_a_passage_that_begins_with_yes_or_no_is_shown(passage: str) -> None:
    assert passage in show(passage, QUESTION)


@pytest.mark.parametrize("question", ["How does it verify the data of a backup archive?", "data of a backup archive"])
def test_another_question_gains_nothing_by_it(question: str) -> None:
    assert YES not in show(YES, question)


def test_the_turn_of_a_chat_that_says_no_is_shown() -> None:
    turns = [f"[10:{number % 60:02}] <u{number % 7}> the driver of that card is in kernel {number}" for number in range(300)]
    turns[150:150] = ["[11:01] <ann> is a driver of the card there?", "[11:02] <bob> ann: nope, that card needs something else"]
    index = build("\n".join(turns).encode())
    assert index.kind == "turns"
    question = "Is there a driver for that card in the kernel?"
    assert "needs something else" in select(index, question, max_tokens=120).text
    assert "needs something else" not in select(index, "driver for that card in the kernel", max_tokens=120).text


def test_a_no_to_something_else_is_not_shown_first() -> None:
    no = [f"No shelf of hall {number} is painted before the winter.\n\n" for number in range(3)]
    asked = "The lift runs on Sundays if the porter is there.\n\n"
    halls = [f"Hall {number} has a porter and a lift, which are described on the plan below.\n\n" for number in range(60)]
    index = build("".join([*halls[:30], *no, asked, *halls[30:]]).encode())
    shown = select(index, "Does the lift run on Sundays?", max_tokens=40).text
    assert "on Sundays if the porter" in shown
    assert "No shelf" not in shown
