"""What adapters do that see the whole conversation, with the same drivers as `suite.py`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from overspill import Settings
from tests.integrations.driving import Call, Driver, Request, Scripted
from tests.integrations.suite import find_name, settings

__all__ = ["settings"]

PAGES = 6
WINDOW = 8_000  # tokens; each page has about 2,000


def read_page(number: int) -> str:
    """Read a page."""
    return f"page {number}\n" + "\n".join(f"{line} of page {number}: {line * number}" for line in range(160))


def fail(number: int) -> str:
    """Fail."""
    raise ValueError(read_page(number))


def read_pages(*last: Any) -> Scripted:
    """One page after the other, as a model does."""
    return Scripted(*[[Call("read_page", {"number": number}, f"c{number}")] for number in range(PAGES)], *last)


def find_replaced(request: Request) -> list[str]:
    return [id for id, text in request.results.items() if text.startswith("[An earlier result")]


async def test_old_results_are_replaced_by_names_that_can_be_read(driver: Driver, settings: Settings):
    def read_again(request: Request) -> list[Call]:
        name = find_name(request.results["c1"])
        return [Call("get_tool_output", {"id": name, "mode": "grep", "pattern": "77 of page 1:"}, "c9")]

    script = read_pages(read_again, lambda request: request.results["c9"])
    answer = await driver.agent([read_page], script, settings=settings, budget=WINDOW, compact=0.6).run("Read all pages.")
    assert "77 of page 1: 77" in answer
    asked = script.requests[PAGES]
    assert {"c0", "c1"} <= set(find_replaced(asked))
    assert {"c4", "c5"}.isdisjoint(find_replaced(asked))  # of the last turns
    assert len(asked.results) == PAGES  # every call keeps its result


async def test_old_results_are_replaced_in_batches(driver: Driver, settings: Settings):
    """A change of what was sent before costs the prompt cache, so there are few."""
    script = read_pages("done")
    await driver.agent([read_page], script, settings=settings, budget=WINDOW, compact=0.6).run("Read all pages.")
    replaced = [find_replaced(request) for request in script.requests]
    changes = sum(now != before for before, now in pairwise(replaced))
    assert 0 < changes < PAGES / 2
    for before, now in pairwise(script.requests):
        for id in find_replaced(before):
            assert now.results[id] == before.results[id]


async def test_the_room_of_old_results_is_free_again(driver: Driver, settings: Settings):
    """All pages together are half as large again as the window, and the model does not say what a request used."""
    script = read_pages("done")
    await driver.agent([read_page], script, settings=settings, budget=WINDOW, compact=0.6).run("Read all pages.")
    whole = [request.results[f"c{number}"] for number, request in enumerate(script.requests[1:])]
    assert [read_page(number) in text for number, text in enumerate(whole)] == [True] * PAGES


async def test_old_results_stay_unless_that_is_asked_for(driver: Driver, settings: Settings):
    script = read_pages("done")
    await driver.agent([read_page], script, settings=settings).run("Read all pages.")
    assert not find_replaced(script.last)


async def test_replacing_old_results_needs_the_size_of_the_window(driver: Driver, settings: Settings):
    with pytest.raises(Exception, match="Give `budget` as well"):
        await driver.agent([read_page], read_pages("done"), settings=settings, compact=0.5).run("Read all pages.")
    with pytest.raises(Exception, match="above 0 and at most 1"):
        driver.agent([read_page], read_pages("done"), settings=settings, compact=70)
