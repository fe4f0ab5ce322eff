"""The replay that prices recorded conversations, on a conversation of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bill.conversation import Conversation, Result, Step
from benchmarks.bill.material import read_claude_code, read_example
from benchmarks.bill.prices import Prices, Request, divide
from benchmarks.bill.replay import Replayed, replay, telling
from benchmarks.bill.report import render
from overspill import Settings

PRICES = Prices(fresh=3, cache_read=0.3, cache_write=3.75, output=15, cache_seconds=300, least_cached=0)
TOOLS = 342


async def replay_example(settings: Settings | None = None) -> Replayed:
    return await replay(read_example(), PRICES, settings or Settings(), TOOLS, with_intent=False)


def test_a_request_reads_what_the_last_one_sent_and_writes_the_rest():
    first, second = divide([Request(1000, 50), Request(1400, 20)], PRICES)
    assert (first.cache_read, first.cache_write, first.output) == (0, 1000, 50)
    assert (second.cache_read, second.cache_write, second.output) == (1000, 400, 20)


def test_a_cache_that_has_expired_is_written_again():
    _, second = divide([Request(1000, 50, at=0), Request(1400, 20, at=301)], PRICES)
    assert (second.cache_read, second.cache_write) == (0, 1400)


def test_a_prompt_too_short_for_the_cache_is_fresh_input():
    (usage,) = divide([Request(1000, 50)], Prices(3, 0.3, 3.75, 15, 300, least_cached=1024))
    assert (usage.fresh, usage.cache_write) == (1000, 0)


async def test_what_the_model_wrote_and_was_not_shown_costs_a_request():
    replayed = await replay_example()
    (need,) = replayed.needs
    assert "ord-5017" in need.words
    assert (need.asked, need.step, need.tool) == (0, 1, "list_orders")
    assert replayed.kept == 1
    assert replayed.with_it.steps == replayed.without.steps + need.steps


async def test_a_conversation_whose_results_pass_pays_for_the_tools_alone():
    replayed = await replay_example(Settings(tool_response_max_bytes=1_000_000, async_token_threshold=1_000_000))
    assert (replayed.kept, replayed.needs) == (0, ())
    sent = [usage.input for usage in replayed.without.usages]
    assert [usage.input for usage in replayed.with_it.usages] == [tokens + TOOLS for tokens in sent]


async def test_words_that_the_model_knew_before_are_no_need():
    text = "\n".join(f"{n} src/parts/Wheel{n:04}.java" for n in range(900))
    steps = (Step("I list the files.", (Result("ls", text),)), Step("Now src/parts/Wheel0500.java, which you named."))
    conversation = Conversation("known", "test", "What is in src/parts/Wheel0500.java?", steps)
    assert (await replay(conversation, PRICES, Settings(), TOOLS, with_intent=False)).needs == ()


async def test_a_model_may_ask_about_every_kept_output():
    text = "\n".join(f"{n} fine" for n in range(5000))
    conversation = Conversation("fine", "test", "Is all well?", (Step("I look.", (Result("log", text),)), Step("Yes.")))
    plain = await replay(conversation, PRICES, Settings(), TOOLS, with_intent=False)
    asking = await replay(conversation, PRICES, Settings(), TOOLS, with_intent=False, asks_always=True)
    assert (plain.with_it.steps, asking.with_it.steps) == (2, 3)


async def test_the_same_replay_twice_is_the_same():
    assert render([await replay_example()], PRICES) == render([await replay_example()], PRICES)


@pytest.mark.parametrize(("text", "found"), [("the plain words of a sentence", set()), ("_toolName", {"toolname"})])
def test_only_names_and_numbers_are_telling(text: str, found: set[str]):
    assert telling(text) == found


def test_one_message_of_claude_code_takes_several_lines():
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 0, "output_tokens": 7}
    said = {"type": "user", "message": {"content": "Look."}}
    parts = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}]
    lines = [
        {"type": "assistant", "timestamp": "2026-06-05T19:16:42Z", "message": {"id": "m1", "content": [part], "usage": usage}}
        for part in parts
    ]
    answer = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text of a"}]}}
    conversation = read_claude_code("a.jsonl", [said, *lines, answer])
    (step,) = conversation.steps
    assert conversation.beginning == "Look."
    assert step.results == (Result("Read", "text of a", {"path": "a"}),)
    assert step.usage
    assert step.usage.input == 903


def test_the_example_is_small():
    assert Path("benchmarks/bill/example.json").stat().st_size < 40_000
