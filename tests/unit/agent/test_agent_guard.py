"""The context guard: what is counted, what is set aside, when the window is full."""

from __future__ import annotations

from overspill.agent.models import ContextGuard
from overspill.models.protocol import Message, Request, Response, Usage
from overspill.settings import Settings
from overspill.types import Reply

TOOL = {"name": "search", "description": "word " * 500, "parameters": {"type": "object"}}
PLAIN = Request("Be brief.", (Message("user", "Hello."),))


def guard(**settings: int) -> ContextGuard:
    return ContextGuard(Settings(**settings), 8000, 1000)


def test_the_budget_is_the_window_minus_output_and_buffer() -> None:
    assert guard().budget.room == 8000 - 1000 - 256
    assert guard(contextWindow=4000, contextBuffer=0).budget.room == 3000
    assert guard(maxOutputTokens=500, contextBuffer=100).budget.room == 7400


def test_schemas_of_tools_are_counted() -> None:
    plain, with_tool = guard(), guard()
    plain.take(PLAIN)
    with_tool.take(Request("Be brief.", PLAIN.messages, (TOOL,)))
    assert 500 < with_tool.budget.reserved - plain.budget.reserved < 600


def test_the_providers_count_wins_over_our_own() -> None:
    made = guard()
    made.take(PLAIN)
    made.settle(PLAIN, Response("Hi.", usage=Usage(3000, 500)))
    assert (made.budget.used, made.percent) == (3500, 43)
    made = guard()
    made.take(PLAIN)
    reserved = made.budget.reserved
    made.settle(PLAIN, Response("Hi."))
    assert reserved < made.budget.used < reserved + 10


def test_it_is_full_when_an_answer_did_not_fit_or_nothing_is_left() -> None:
    made = guard()
    assert not made.is_full
    made.count_replies([Reply(text="", content=[]), Reply(text="", content=[], fits=False)])
    assert made.is_full
    made = guard()
    made.settle(PLAIN, Response("", usage=Usage(6999, 0)))
    assert (made.is_full, made.budget.room) == (False, 0)
    made.settle(PLAIN, Response("", usage=Usage(7000, 1)))
    assert (made.is_full, made.percent) == (True, 87)


def test_a_text_that_must_be_sent_is_charged_even_if_it_does_not_fit() -> None:
    made = guard(contextWindow=1000, maxOutputTokens=100)
    assert made.afford("word " * 100)
    assert not made.afford("word " * 900)
    assert made.budget.reserved > 900
    assert guard().afford("word " * 8000, reserved=7999)
