"""`session.compact`: old results become names, in one batch, and nothing is lost."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from overspill import ContextBudget, Session, Settings, SyncSession
from overspill.errors import BadRequest

TEXT = "".join(f"line {number} of a result\n" for number in range(400))  # about 2,800 tokens


def openai(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read everything."}]
    for turn in range(turns):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"{turn}\n{TEXT}"})
    return messages


def responses(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read everything."}]
    for turn in range(turns):
        messages.append({"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"})
        messages.append({"type": "function_call_output", "call_id": f"c{turn}", "output": f"{turn}\n{TEXT}"})
    return messages


def anthropic(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read everything."}]
    for turn in range(turns):
        messages.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"c{turn}", "name": "read", "input": {}}]})
        image = {"type": "image", "source": {"type": "base64", "data": "QUFB"}}
        content = [{"type": "text", "text": f"{turn}\n{TEXT}"}, image]
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{turn}", "content": content}]})
    return messages


def find_stored(messages: Any) -> list[str]:
    return re.findall(r"stored as (out_\w+)", json.dumps(messages))


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("make", [openai, responses, anthropic])
async def test_old_results_become_names_and_stay_readable(make: Any):
    messages = make(6)
    before = copy.deepcopy(messages)
    async with Session() as session:
        compacted = await session.compact(messages, 10_000)
        names = find_stored(compacted)
        assert len(names) == 4
        for number, name in enumerate(names):
            with session.open(name) as stored:
                assert stored.bytes() == f"{number}\n{TEXT}".encode()
        assert "of read is stored" in json.dumps(compacted)
    assert messages == before
    assert compacted[-4:] == messages[-4:]
    assert len(compacted) == len(messages)


@pytest.mark.parametrize("make", [openai, responses, anthropic])
async def test_below_the_threshold_nothing_changes(make: Any):
    async with Session() as session:
        assert await session.compact(make(6), 100_000) == make(6)
        assert session.kept() == []


@pytest.mark.parametrize("make", [openai, responses, anthropic])
async def test_the_prefix_changes_once_and_not_every_turn(make: Any):
    """A host may pass the messages as they were, or as they came back."""
    async with Session() as session:
        first = await session.compact(make(6), 10_000)
        assert await session.compact(make(7), 30_000) == [*first, *make(7)[-2:]]
        assert await session.compact([*first, *make(7)[-2:]], 30_000) == [*first, *make(7)[-2:]]
        assert len(session.kept()) == 4


async def test_the_next_batch_begins_when_the_threshold_is_reached_again():
    async with Session() as session:
        first = await session.compact(openai(6), 10_000)
        again = await session.compact([*first, *openai(12)[13:]], 10_000)
        assert len(find_stored(again)) == 10
        assert again[:9] == first[:9]


async def test_errors_and_small_results_stay():
    messages = openai(6)
    messages[2]["content"] = "Error: the disk is full\n" + TEXT
    messages[4]["content"] = "fine"
    block = anthropic(6)
    block[2]["content"][0]["is_error"] = True
    async with Session() as session:
        assert (await session.compact(messages, 5_000))[:5] == messages[:5]
        assert (await session.compact(block, 5_000))[2] == block[2]


async def test_the_same_result_is_stored_once():
    messages = openai(6)
    for message in messages:
        if message["role"] == "tool":
            message["content"] = TEXT
    async with Session() as session:
        assert len(set(find_stored(await session.compact(messages, 5_000)))) == 1
        assert len(session.kept()) == 1


async def test_the_bytes_of_images_are_no_tokens():
    messages = anthropic(6)
    for message in messages[2::2]:
        message["content"][0]["content"][1]["source"]["data"] = "QUFB" * 100_000
    async with Session() as session:
        assert await session.compact(messages, 100_000) == messages


async def test_images_stay_in_their_place():
    async with Session() as session:
        compacted = await session.compact(anthropic(6), 10_000)
        assert [block["type"] for block in compacted[2]["content"][0]["content"]] == ["text", "image"]
        assert compacted[2]["content"][0]["content"][1] == anthropic(6)[2]["content"][0]["content"][1]


@pytest.mark.parametrize(
    "odd",
    [
        [{}],
        [{"role": "tool"}],
        [{"role": "tool", "content": [None, 7, {"text": 7}]}],
        [{"role": "user", "content": [None, {"type": "tool_result"}]}],
        [{"type": "function_call_output", "output": None}],
    ],
)
async def test_messages_of_an_unknown_form_stay(odd: list[dict[str, Any]]):
    async with Session() as session:
        messages = [*odd, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}, *openai(3)]
        assert (await session.compact(messages, 10))[: len(odd)] == odd


def test_a_blocking_session_compacts_too():
    with SyncSession() as session:
        assert len(find_stored(session.compact(openai(6), 10_000))) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": "all"}, "window must be a number of tokens, not str."),
        ({"window": 9, "threshold": 2}, "threshold is 2; it must be above 0 and at most 1."),
        ({"window": 9, "keep_turns": 0}, "keep_turns is 0; it must be at least 1."),
    ],
)
async def test_a_mistake_is_named(arguments: dict[str, Any], message: str):
    async with Session() as session:
        with pytest.raises(BadRequest) as refused:
            await session.compact([], **arguments)
    assert str(refused.value) == message


async def test_a_session_that_is_opened_again_uses_the_same_names(tmp_path: Path):
    """So that what a provider has cached of the conversation is still what it is sent."""
    settings, messages = Settings(storeDir=str(tmp_path)), openai(6)
    async with Session(settings, name="customer-7") as session:
        before = await session.compact(messages, 10_000)
    async with Session(settings, name="customer-7") as session:
        after = await session.compact(messages, 10_000)
        assert after == before
        assert len(session.kept()) == len(find_stored(before)) == 4
        small = await session.compact(messages, 1_000_000)  # it was replaced, and stays so
        assert small == before


async def test_a_result_whose_stored_copy_is_gone_is_stored_again(tmp_path: Path):
    settings, messages = Settings(storeDir=str(tmp_path)), openai(6)
    async with Session(settings, name="customer-7") as session:
        first, *others = find_stored(await session.compact(messages, 10_000))
        gone = session.kept()[0].id
    for path in [path for path in tmp_path.rglob("*") if gone in path.name]:
        path.unlink()
    async with Session(settings, name="customer-7") as session:
        again = find_stored(await session.compact(messages, 10_000))
        assert again[1:] == others
        assert again[0] != first
        with session.open(again[0]) as stored:
            assert stored.bytes() == f"0\n{TEXT}".encode()


async def test_what_a_program_stored_itself_is_not_replaced_before_the_window_fills(tmp_path: Path):
    messages = openai(6)
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        await session.keep(messages[2]["content"])
        assert await session.compact(messages, 1_000_000) == messages


async def test_a_budget_recovers_when_a_model_does_not_say_what_it_used():
    budget = ContextBudget(20_000)
    async with Session(budget=budget) as session:
        messages = openai(6)
        for number in range(6):
            reply = await session.call("read", {}, lambda number=number: f"{number}\n{TEXT}")
            assert reply.passed or number == 5
        assert budget.room < 4_000
        shown = await session.compact(messages, 20_000)
        assert len(find_stored(shown)) == 4
        assert 10_000 < budget.room < 15_000
        assert budget.reserved == 0
        budget.settle(17_000)  # a provider's count is better
        await session.compact(messages, 20_000)
        assert budget.used == 17_000
