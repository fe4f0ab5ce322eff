"""In the default preset, no model makes a reply worse than the engine's, and a good one is recognised however it answers."""

import json
import re
from collections.abc import Callable

import pytest
from frames import unmarked

from overspill import Session, Settings
from overspill.models.protocol import Request
from overspill.store.memory import MemoryStore
from overspill.testing import ScriptedModel
from overspill.types import Extraction, ToolCall

pytestmark = pytest.mark.anyio

CAUSE = 'ERROR request 4711 failed: "connection reset" by peer  (id=abc-777)'
LOG = "".join(f"2026-11-15T04:{i // 60:02d}:{i % 60:02d}Z INFO request {i} served in {i % 7} ms\n" for i in range(900))
LOG += f"2026-11-15T04:40:00Z {CAUSE}\n" + "".join(f"2026-11-15T04:41:{i:02d}Z INFO cache {i} warm\n" for i in range(60))
QUESTION = "Which request failed, and with which id?"
MODES = ("focused", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("full-chunked", "read-grep", "auto")))
LINE = re.compile(r"(\d+)[|:] ?[^\n]*abc-777")


def looking(reply: Callable[[Request], str], pattern: str = "4711") -> Callable[[Request], str | ToolCall]:
    """Where there are tools, it looks first."""

    def answer(request: Request) -> str | ToolCall:
        if request.tool_choice == "required":
            return ToolCall("1", "Grep", {"pattern": pattern, "context": 0})
        return reply(request)

    return answer


async def ask(model: ScriptedModel | None, mode: str, answer_max_bytes: int = 4000) -> tuple[str, Extraction | None]:
    models = {model.name: model} if model else {}
    settings = Settings(answerMaxBytes=answer_max_bytes, extractionRetries=0)
    async with Session(settings, store=MemoryStore(), models=models) as session:
        kept = await session.keep(LOG, "get_log")
        reply = await session.invoke("tool_output", {"handle": kept.handle, "extract": QUESTION, "mode": mode})
        assert len(reply.text.encode()) <= answer_max_bytes
        found = await session.extract(kept.handle, QUESTION, mode=mode, max_tokens=600)  # type: ignore[arg-type]
    return unmarked(reply.text), found


BAD = {
    "garbage": "qwertz asdf yxcv " * 300,
    "nothing found": "NO RELEVANT DATA FOUND",
    "a liar": "Request 9999 failed.\nQUOTES:\n> ERROR request 9999 failed: disk full (id=zzz-123)\n> id=zzz-123",
    "a liar with numbers": "It was zebra-99.\nQUOTES: 1, 2, 3",
    "a parrot": "Answer the question from the data, as briefly as you can, with the exact names, numbers, identifiers and "
    "times that are in it.\nThen write QUOTES: and the numbers of the lines that say so.",
    "an error page": "<html><body>502 Bad Gateway</body></html>",
    "silence": "",
    "marks of a chat": "<|im_start|>assistant\n<|im_end|><|endoftext|>",
    "a call written as text": '{"name": "Grep", "arguments": {"pattern": "4711"}}',
    "values from elsewhere": "It was 04:41:37Z.",
}


@pytest.mark.promise("a-model-never-makes-it-worse")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("said", BAD.values(), ids=BAD)
async def test_whatever_a_model_says_the_reply_holds_what_the_engine_shows(said: str, mode: str):
    reply, found = await ask(ScriptedModel(looking(lambda _: said)), mode)
    assert CAUSE in reply
    assert "STRATEGY:builtin" in reply
    assert found
    assert (found.model, found.support) == ("builtin/lexical", "")


@pytest.mark.parametrize("mode", MODES)
async def test_an_unsupported_answer_comes_last_and_is_marked(mode: str):
    reply, found = await ask(ScriptedModel(looking(lambda _: BAD["a liar"])), mode)
    assert found
    assert found.unsupported == "Request 9999 failed."
    assert reply.endswith(
        "UNSUPPORTED (what the model answered; nothing was found in the stored output that says so):\n"
        "[untrusted data N]\nRequest 9999 failed.\n[end of untrusted data N]"
    )
    assert reply.index(CAUSE) < reply.index("Request 9999")
    assert "zzz-123" not in reply
    assert "WARNING: Nothing was found in the stored output that supports the answer of test/scripted." in reply


@pytest.mark.slow
async def test_garbage_takes_no_more_than_its_share():
    alone, _ = await ask(None, "auto")
    reply, _ = await ask(ScriptedModel(lambda _: BAD["garbage"]), "focused")
    passages = reply.partition("UNSUPPORTED")[0]
    assert len(passages) > 0.8 * len(alone)
    assert "qwertz" in reply
    assert "omitted" in reply


def cite_number(request: Request) -> str:
    found = LINE.search(request.messages[-1].text if not request.tools else request.messages[2].text)
    assert found
    return f"Request 4711, id abc-777.\nQUOTES: {found[1]}"


GOOD: dict[str, Callable[[Request], str]] = {
    "exactly": lambda _: f"Request 4711, id abc-777.\n\nQUOTES:\n> {CAUSE}",
    "inexactly": lambda _: (
        "Request 4711, id abc-777.\nQuotes:\n- “ERROR request 4711 failed: 'connection reset' by peer (id=abc-777)”".replace(
            "'", '"'
        )
    ),
    "in a fence": lambda _: f"```\nRequest 4711, id abc-777.\nQUOTES:\n1. {CAUSE}\n```",
    "after a wrapper": lambda _: f"<answer>Request 4711, id abc-777.</answer>\nQUOTES:\n> {CAUSE}",
    "before a denial": lambda _: f"Request 4711, id abc-777.\nQUOTES:\n> {CAUSE}\nNO RELEVANT DATA FOUND",
    "by number": cite_number,
    "by number in brackets": lambda request: cite_number(request).replace("\nQUOTES: ", " [") + "]",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD)
async def test_a_good_answer_is_verified_however_it_cites(answer: Callable[[Request], str], mode: str):
    reply, found = await ask(ScriptedModel(looking(answer)), mode)
    assert found
    assert (found.support, found.found, found.model) == ("cited", True, "test/scripted")
    assert found.strategy == ("focused" if mode == "auto" else mode)
    assert any("abc-777" in excerpt.text for excerpt in found.excerpts)
    data = LOG.encode()
    assert all(data[each.start_byte : each.end_byte].decode() == each.text for each in found.excerpts)
    assert reply.index("Request 4711, id abc-777.") < reply.index("CITATIONS") < reply.index("PASSAGES")
    assert CAUSE in reply


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_that_cites_nothing_is_located(mode: str):
    reply, found = await ask(ScriptedModel(looking(lambda _: "It was 4711, with abc-777.")), mode)
    assert found
    assert (found.support, [CAUSE in each.text for each in found.excerpts]) == ("located", [True])
    assert "FOUND AT (the model cited nothing; these passages hold the words of its answer):\n[1] line 901, bytes " in reply


async def test_marks_of_a_chat_are_no_part_of_an_answer():
    said = "It was 4711, with abc-777.<|im_end|>\n<|im_start|>assistant"
    _, found = await ask(ScriptedModel(lambda _: said), "focused")
    assert found
    assert (found.text, found.support) == ("It was 4711, with abc-777.", "located")


async def test_passages_come_first_where_the_engine_is_not_sure():
    text = "\n".join(f"{number}: the harbour of town {number} is {number * 7} m deep" for number in range(400))
    model = ScriptedModel(lambda _: "The harbour of town 11 is 77 m deep.")
    async with Session(Settings(answerMaxBytes=4000), store=MemoryStore(), models={model.name: model}) as session:
        kept = await session.keep(text, "get_towns")
        question = "Who is the keeper of the lighthouse above the harbour, and since when?"
        reply = await session.invoke("tool_output", {"handle": kept.handle, "extract": question, "mode": "focused"})
    assert reply.text.index("PASSAGES (") < reply.text.index("\nThe harbour of town 11 is 77 m deep.\n[end")


async def test_a_number_that_proves_nothing_is_left_out():
    reply, found = await ask(ScriptedModel(lambda request: f"{cite_number(request)}, 1"), "full-chunked")
    assert found
    assert found.support == "cited"
    assert all("abc-777" in each.text for each in found.excerpts)
    assert "WARNING: 1 of 2 passages that the model cited are not there or do not support its answer." in reply


async def test_data_comes_first_then_question_and_form():
    model = ScriptedModel(cite_number)
    await ask(model, "full-chunked")
    request = model.requests[0]
    nonce = re.search(r"\[data ([0-9a-f]{12})\]", request.system)
    assert nonce
    text = request.messages[0].text
    assert text.startswith(f"[data {nonce[1]}]\n1| 2026-11-15T04:00:00Z INFO request 0")
    data, rest = text.split(f"\n[end of data {nonce[1]}]\n")
    assert LOG.splitlines()[-1] in data
    assert rest.index(QUESTION) < rest.index("QUOTES:")
    assert QUESTION not in data + request.system
    assert "ai-agent" not in text + request.system


async def test_focused_sends_only_passages():
    model = ScriptedModel(cite_number)
    await ask(model, "focused")
    assert len(model.requests) == 2  # one for each question
    assert all(len(request.messages[0].text) < len(LOG) / 4 for request in model.requests)


async def test_a_grep_without_a_hit_shows_the_nearest_passages():
    model = ScriptedModel(looking(lambda _: "abc-777", pattern="the request that has failed"))
    _, found = await ask(model, "read-grep")
    shown = model.requests[1].messages[-1].text
    assert shown.startswith("No line matches.\nInstead, the passages that are nearest to the pattern and the question:\n[data ")
    assert f"901| 2026-11-15T04:40:00Z {CAUSE}" in shown
    assert found
    assert found.support == "located"


async def test_a_pattern_of_several_words_is_also_tried_as_words():
    model = ScriptedModel(looking(lambda _: "abc-777", pattern="failed 4711"))
    await ask(model, "read-grep")
    shown = model.requests[1].messages[-1].text
    assert shown.startswith("No line matches the pattern as a whole. Lines with all of its words:\n1 of 1 matching lines.\n")


async def test_the_sub_agent_reads_numbered_lines_and_needs_no_file_name():
    def reply(request: Request) -> str | ToolCall:
        return ToolCall("1", "Read", {"offset": 900, "limit": 2}) if request.tool_choice == "required" else "abc-777"

    model = ScriptedModel(reply)
    await ask(model, "read-grep")
    assert model.requests[0].tools[0]["parameters"]["required"] == []
    shown = model.requests[1].messages[-1].text
    assert f"\n900| {LOG.splitlines()[899]}\n901| {LOG.splitlines()[900]}\n[end of data " in shown
    assert shown.index("[end of data ") < shown.index(QUESTION)


@pytest.mark.parametrize("said", ["QUOTES: 1", "3", "nothing", "", "NO RELEVANT DATA FOUND", "> made up by the model"])
async def test_snippets_hold_what_the_engine_finds(said: str):
    model = ScriptedModel(lambda _: said)
    async with Session(Settings(), store=MemoryStore(), models={model.name: model}) as session:
        kept = await session.keep(LOG, "get_log")
        reply = await session.invoke("get_tool_output", {"id": kept.handle, "mode": "extract", "query": QUESTION})
    data = LOG.encode()
    snippets = json.loads(reply.text)["snippets"]
    assert any(CAUSE in each["text"] for each in snippets)
    assert all(data[each["start_byte"] : each["end_byte"]].decode() == each["text"] for each in snippets)
