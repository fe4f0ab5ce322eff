"""The bill of a session, from its journal: each figure is worked out by hand."""

from __future__ import annotations

import pytest

from overspill.record.bill import Bill
from overspill.record.events import (
    ConversationOpened,
    Entry,
    ModelCalled,
    OutputRetrieved,
    OutputStored,
    TextShown,
    ToolCalled,
)
from overspill.settings.keys import PriceSettings
from overspill.types import Kept, Reason, Size

FILE = "01a1dd7b-13a4-7c37-a821-1e5e402e61f9"
PRICES = PriceSettings(cache_write=4.0, cache_read=1.0, output=10.0, prompt_tokens=5_000)


def stored(t: int, tokens: int, reason: Reason = "size_cap") -> OutputStored:
    return OutputStored(t, Kept("s", FILE, "tool", reason, Size(1_000, 1_000, 10, tokens), "ab", 1))


def shown(t: int, tokens: int) -> ToolCalled:
    return ToolCalled(t, "tool", latency=10, id=FILE, reason="size_cap", truncated=True, tokens=tokens)


def price(*events: Entry) -> dict[str, float]:
    """In millionths of a dollar: tokens times the prices above."""
    bill = Bill()
    for event in events:
        bill.add(event)
    return {name: round(cost * 1_000_000, 3) for name, cost in bill.costs(PRICES).items()}


def test_what_is_kept_out_would_have_been_written_once_and_read_in_each_later_request():
    found = price(stored(100, 30_000), shown(101, 200), ToolCalled(500, "next", latency=10), ToolCalled(900, "last", latency=10))
    assert (found["kept"], found["shown"]) == (30_000 * (4 + 1 + 1), 200 * (4 + 1 + 1))
    assert found["saved"] == found["kept"] - found["shown"]


def test_calls_that_run_at_the_same_time_come_from_one_request():
    one = price(stored(100, 1_000), shown(101, 0), ToolCalled(150, "beside", latency=60))
    other = price(stored(100, 1_000), shown(101, 0), ToolCalled(150, "after", latency=20))
    assert (one["kept"], other["kept"]) == (4_000, 5_000)


def test_a_retrieval_costs_a_request_that_reads_everything_and_what_it_read_back():
    asked = OutputRetrieved(500, "tool_output", "auto", id=FILE, latency=10, chars_in=120, tokens=700)
    found = price(ConversationOpened(1, 1_600), ToolCalled(50, "a", chars_out=4_000), stored(100, 30_000), shown(101, 200), asked)
    assert found["read_back"] == 700 * 4
    assert found["steps"] == 5_000 + (400 + 1_000 + 200) + 10 * (120 // 4 + 20)
    assert found["offered"] == 400 * (4 + 1 + 1)
    assert found["kept"] == 30_000 * 4  # no request of which it would have been part, besides the one that reads it
    assert found["saved"] == found["kept"] - found["shown"] - found["read_back"] - found["offered"] - found["steps"]


def test_a_session_that_kept_nothing_lost_what_its_tools_cost():
    found = price(ConversationOpened(1, 1_600), ToolCalled(50, "a", chars_out=400))
    assert (found["saved"], found["spent"]) == (-400 * (4 + 1), 400 * (4 + 1) + 100 * 4)


def test_an_output_that_comes_again_would_have_entered_again():
    found = price(stored(100, 30_000), shown(101, 200), shown(500, 50))
    assert found["kept"] == 30_000 * (4 + 1) + 30_000 * 4


def test_what_the_host_stored_itself_would_not_have_entered():
    assert price(stored(100, 30_000, "requested"))["kept"] == 0


def test_a_background_output_counts_once_with_what_was_delivered_of_it():
    found = price(ToolCalled(1, "slow", chars_out=400), stored(100, 30_000, "background"), TextShown(200, "output", 800, FILE))
    assert (found["kept"], found["shown"]) == (30_000 * 4, 200 * 4)


def test_models_that_extract_are_paid_for_and_those_of_the_agent_are_not():
    found = price(ModelCalled(1, "op", "m", cost=0.25), ModelCalled(2, "", "m", cost=9.0))
    assert found["steps"] == 250_000


def test_a_session_that_is_opened_again_has_its_tools_once():
    assert price(ConversationOpened(1, 400), ConversationOpened(2, 400))["offered"] == 100 * 4


@pytest.mark.parametrize("prices", [PriceSettings(cache_write=0, cache_read=0, output=0), PriceSettings(cache_read=3.0)])
def test_every_price_can_be_set(prices: PriceSettings):
    bill = Bill()
    for event in (stored(100, 1_000), shown(101, 0), ToolCalled(500, "next", latency=10)):
        bill.add(event)
    assert bill.costs(prices)["kept"] == pytest.approx((prices.cache_write + prices.cache_read) / 1_000)
