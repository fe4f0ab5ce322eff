"""Who says what in a conversation, and who answers whom."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

REMARKS = (
    "The oven is warm",
    "The tomatoes are ripe",
    "Nobody fed the cat",
    "There is a letter for you",
    "The bus was late today",
)


def write_chat(stamp: str) -> str:
    said = [f"{stamp} {('Ann', 'Bo Li')[turn % 2]}: {REMARKS[turn % 5]}, and that is all there is to say." for turn in range(60)]
    said[30:32] = [f"{stamp} Ann: How is the piano?", f"{stamp} Bo Li: I practise it every morning before work."]
    return "\n".join(said) + "\n"


@pytest.mark.parametrize("stamp", ["[4:43 pm on 6 January, 2024]", "[2024-01-06 16:43:00]", "(16:43)", "[6 Jan 2024 16:43] -"])
def test_a_turn_may_begin_with_a_time_of_day_in_brackets(stamp: str) -> None:
    index = build(write_chat(stamp).encode())
    assert index.kind == "turns"
    assert len(index.outline) == 60
    assert "every morning" in select(index, "When does Bo practise the piano?", max_tokens=100).text


@pytest.mark.parametrize("names", [("INFO", "ERROR"), ("worker", "scheduler")])
def test_programs_that_write_a_time_in_brackets_hold_no_conversation(names: tuple[str, str]) -> None:
    lines = [f"[2024-01-06 16:43:{turn:02}] {names[turn % 2]}: the job is {REMARKS[turn % 5].lower()}\n" for turn in range(60)]
    assert build("".join(lines).encode()).kind == "log"


def write_issue(number: int, opening: str, *replies: str) -> str:
    said = [f"{('ann', 'bo')[place % 2]}, 2020-08-1{place}T17:50:\n{each}\n\n" for place, each in enumerate((opening, *replies))]
    return f"Issue {number} (closed)\n\n{''.join(said)}\n"


def test_a_reply_that_shares_no_word_with_the_question_is_shown_after_what_it_answers() -> None:
    remark = "The pump was mentioned at length, and here is what else was said of pipe {0}, which is another matter. "
    issues = [write_issue(number, remark.format(number), f"Then pipe {number} needs a larger valve.") for number in range(40)]
    setting = "We run it by day and by night, in the cold too, and have done so for years without a thought. "
    issues[20] = write_issue(20, "May I oil the pump?\n\n" + setting * 12, "This would harm the seals.", "I see, thanks.")
    index, question = build("".join(issues).encode()), "May one oil the pump?"
    assert index.kind == "messages"
    assert "harm the seals" in select(index, question, max_tokens=200).text


def test_a_message_of_another_thread_is_no_reply() -> None:
    issues = [
        write_issue(1, "May I oil the pump?", "Never.", "Why?"),
        *(write_issue(number, "A valve leaks.") for number in (2, 3, 4)),
    ]
    shown = select(build("".join(issues).encode()), "May one oil the pump?", max_tokens=400).text
    assert "Never." in shown
    assert "A valve leaks." not in shown
