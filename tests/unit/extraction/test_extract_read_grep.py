"""The sub-agent: two tools, one file, a handful of turns."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import asking
import pytest
from asking import once

from overspill.extraction import Cache, Document, ExtractionFailed, Policy, extract
from overspill.extraction.read_grep import FileTools
from overspill.models.protocol import Message, ModelError, Request
from overspill.models.targets import Targets
from overspill.store.meter import size_of
from overspill.testing import ScriptedModel
from overspill.types import Extraction, ToolCall

LOG = "".join(f"line {number} says {'error' if number % 100 == 0 else 'ok'}\n" for number in range(1, 2001))
NO_FALLBACK = Policy(fallback=())
stored = partial(asking.stored, tool="fetch_logs", args='{"n":1}')


class Explorer(ScriptedModel):
    """Makes the calls it is given, one a turn, then reports; where it has to call, it looks at the first line, from the turn
    `looks` on."""

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]], report: str = "done", *, looks: int = 1, **more: Any) -> None:
        self.calls = list(calls)
        self.looks = looks
        self.report = report
        super().__init__(self.next, **more)

    def next(self, request: Request) -> str | ToolCall:
        turn = len(self.requests)
        if turn <= len(self.calls) and request.tool_choice != "none":
            name, args = self.calls[turn - 1]
            return ToolCall(str(turn), name, args)
        if request.tool_choice == "required" and turn >= self.looks:
            file = request.messages[0].text.removeprefix("Begin. The file is ").removesuffix(".")
            return ToolCall("look", "Read", {"file": file, "limit": 1})
        found = re.search(r"<ai-agent-([0-9a-f]+)-FINAL", request.system)
        assert found
        return f'<ai-agent-{found[1]}-FINAL format="text">{self.report}</ai-agent-{found[1]}-FINAL>'

    def answers(self) -> list[Message]:
        return [message for message in self.requests[-1].messages if message.role == "tool"]


async def run(document: Document, model: Explorer, policy: Policy = NO_FALLBACK) -> Extraction:
    with anyio.fail_after(20):
        return await extract(document, "the errors", mode="read-grep", model=once(model), policy=policy)


async def answer(document: Document, name: str, policy: Policy = NO_FALLBACK, **args: Any) -> str:
    model = Explorer([(name, {"file": document.handle, **args})])
    await run(document, model, policy)
    return re.sub("data [0-9a-f]{12}", "data N", model.answers()[0].text)


async def test_the_sub_agent_looks_reports_and_is_checked():
    document = stored(LOG)
    calls = [
        ("Grep", {"file": document.handle, "pattern": "error", "context": 0}),
        ("Read", {"file": document.handle, "offset": 99}),
    ]
    report = (
        "Every hundredth line.\nQUOTES:\n> 100:line 100 says error\n> line 200 says error\n> line 201 says error\nCONFIDENCE: 90"
    )
    model = Explorer(calls, report)
    result = await run(document, model)
    assert result.text == "Every hundredth line."
    assert [(each.text, each.start_line) for each in result.excerpts] == [
        ("line 100 says error", 100),
        ("line 200 says error", 200),
    ]
    assert result.warnings == ("1 of 3 quoted passages are not in the stored output and were left out.",)
    assert (result.strategy, result.found, result.chunks_searched, result.chunks_total) == ("read-grep", True, 1, 1)
    assert result.confidence == pytest.approx(0.6)


async def test_the_prompt_says_that_the_handle_is_the_filename():
    document = stored(LOG)
    model = Explorer([])
    await run(document, model)
    request = model.requests[0]
    for part in (
        "IMPORTANT: The handle is the filename.",
        f"- Handle/filename: {document.handle}",
        "- Name: fetch_logs",
        '- Arguments (verbatim JSON): {"n":1}',
        "- Lines: 2000",
        "WHAT TO EXTRACT\nthe errors\n",
        "at most 15 turns",
    ):
        assert part in request.system
    assert [tool["name"] for tool in request.tools] == ["Read", "Grep"]


async def test_no_turn_may_write_more_than_was_reserved_for_it():
    document = stored(LOG)
    model = Explorer([("Read", {"file": document.handle, "limit": 1})], context_window=8_000, max_output_tokens=700)
    await run(document, model)
    assert [request.max_output_tokens for request in model.requests] == [700, 700]


async def test_auto_explores_what_has_many_lines():
    model = Explorer([], context_window=4_000, max_output_tokens=500)
    assert (await extract(stored(LOG), "the errors", model=once(model))).strategy == "read-grep"


async def test_read_shows_lines_and_where_to_continue():
    document = stored(LOG)
    assert await answer(document, "Read", offset=3, limit=2) == (
        "Lines 3-4 of 2000.\n[data N]\nline 3 says ok\nline 4 says ok\n\n[end of data N]\n"
        f"There is more: Read(file='{document.handle}', offset=5)."
    )


async def test_read_is_bounded():
    document = stored(LOG)
    shown = await answer(document, "Read", Policy(fallback=(), answer_bytes=1000), limit="2000")
    assert len(shown) < 1300
    assert shown.endswith("offset=64).")


async def test_the_end_of_the_file_is_the_end():
    assert await answer(stored("one\ntwo\n"), "Read") == "Lines 1-2 of 2.\n[data N]\none\ntwo\n\n[end of data N]"


async def test_read_continues_inside_a_long_line():
    document = stored("x" * 5000 + "needle" + "y" * 5000)
    policy = Policy(fallback=(), answer_bytes=1000)
    assert (await answer(document, "Read", policy)).endswith("byte=1000).")
    inside = await answer(document, "Read", policy, byte=4500)
    assert "needle" in inside
    assert inside.endswith("byte=5500).")


async def test_grep_shows_hits_with_line_numbers():
    assert await answer(stored("a\nb Error\nc\n"), "Grep", pattern="error", ignore_case=True, context=1) == (
        "1 of 1 matching lines.\n[data N]\n1-a\n2:b Error\n3-c\n[end of data N]"
    )


async def test_grep_is_bounded_and_can_be_continued():
    document = stored(LOG)
    policy = Policy(fallback=(), answer_bytes=600)
    first = await answer(document, "Grep", policy, pattern="ok", context=0)
    assert first.startswith("32 of 1034 or more matching lines.\n")
    found = re.search(r"the same Grep with from=(\d+)\.$", first)
    assert found
    assert "\n33:line 33 says ok\n" in await answer(document, "Grep", policy, pattern="ok", context=0, **{"from": int(found[1])})


async def test_grep_says_what_it_did_not_find():
    document = stored(LOG)
    assert await answer(document, "Grep", pattern="panic") == "No line matches."
    assert await answer(document, "Grep", pattern="panic", **{"from": 100}) == "No line matches from byte 100 on."


@pytest.mark.parametrize("file", ["/etc/passwd", "../other", "", "session-x/y"])
async def test_any_other_file_is_refused(file: str):
    document = stored(LOG)
    model = Explorer([("Read", {"file": file}), ("Grep", {"file": file, "pattern": "root"})])
    await run(document, model)
    refusal = f"There is no file {file!r} here. The only file is {document.handle!r}; use that name exactly."
    assert [(message.text, message.is_error) for message in model.answers()[:2]] == [(refusal, True)] * 2


async def test_bad_arguments_are_answered():
    document = stored(LOG)
    model = Explorer(
        [
            ("Read", {"file": document.handle, "offset": 0}),
            ("Read", {"file": document.handle, "offset": 9999, "limit": None}),
            ("Grep", {"file": document.handle, "pattern": "(["}),
            ("Write", {"file": document.handle}),
        ]
    )
    await run(document, model)
    texts = [message.text for message in model.answers()]
    assert texts[0] == "Invalid arguments for Read: Expected `int` >= 1 - at `$.offset`."
    assert texts[1] == "start_line 9999 is past the end: the output has 2000 lines."
    assert texts[2].startswith("The pattern cannot be used:")
    assert "Write" in texts[3]


async def test_in_the_last_turn_there_are_no_tools():
    document = stored(LOG)
    model = Explorer([("Read", {"file": document.handle})] * 30)
    assert (await run(document, model)).text == "done"
    assert len(model.requests) == 15
    assert model.requests[-1].tool_choice == "none"
    assert model.requests[-1].messages[-1].text == (
        "This is your last turn, and there are no more tools. Give your final report in its wrapper now."
    )


async def test_a_full_window_ends_the_reading():
    document = stored(LOG)
    model = Explorer([("Read", {"file": document.handle, "limit": 2000})] * 6, context_window=6_000, max_output_tokens=500)
    await run(document, model)
    assert model.answers()[-1].text == "Your context window is full: nothing more can be read. Give your final report now."
    for request in model.requests:
        text = request.system + "".join(message.text for message in request.messages)
        assert size_of(text).tokens + 500 <= 6_000


async def test_nothing_found_is_an_answer():
    result = await run(stored(LOG), Explorer([], "NO RELEVANT DATA FOUND\nLines that say ok."))
    assert not result.found
    assert result.text == (
        "No content matching query found in tool output.\n"
        f"Searched: the output of fetch_logs ({len(LOG):,} bytes, 2,000 lines), with Read and Grep.\n"
        "What is there: Lines that say ok."
    )


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        (["It is not there.", "As I said."], "test/scripted reported without having looked into the output."),
        ([""], "test/scripted answered nothing."),
        ([ModelError("Bad key.", is_transient=False)], "Bad key."),
        ([RuntimeError("broken pipe")], r"test/scripted could not be asked \(broken pipe\)\."),
    ],
)
async def test_without_a_report_the_strategy_has_failed(replies: list[Any], reason: str):
    with pytest.raises(ExtractionFailed, match=f"read-grep extraction failed: {reason}"):
        await extract(stored(LOG), "the errors", mode="read-grep", model=once(ScriptedModel(replies)), policy=NO_FALLBACK)


async def test_words_without_a_wrapper_are_no_report():
    document = stored(LOG)
    look = ToolCall("1", "Grep", {"file": document.handle, "pattern": "error"})
    model = ScriptedModel([look, "I could not find it, sorry."])
    with pytest.raises(ExtractionFailed, match=r"read-grep extraction failed: test/scripted gave no final report\."):
        await extract(document, "the errors", mode="read-grep", model=once(model), policy=NO_FALLBACK)


async def test_a_turn_that_is_neither_a_call_nor_a_report_is_asked_for_again():
    document = stored(LOG)
    explorer = Explorer([("Grep", {"file": document.handle, "pattern": "error"})])
    tries: Counter[int] = Counter()

    def reply(request: Request) -> str | ToolCall:
        tries[len(request.messages)] += 1
        if tries[len(request.messages)] <= 2:
            return "" if len(request.messages) == 1 else "I could not find it, sorry."
        explorer.requests.append(request)
        return explorer.next(request)

    model = ScriptedModel(reply)
    result = await extract(document, "the errors", mode="read-grep", model=Targets([model]), policy=NO_FALLBACK)
    assert result.text == "done"
    assert len(model.requests) == 6


async def test_the_next_target_is_asked_after_three_tries_without_a_report():
    document = stored(LOG)
    look = ToolCall("1", "Grep", {"file": document.handle, "pattern": "error"})
    first = ScriptedModel([look, "Sorry.", look, ""])
    second = ScriptedModel(lambda request: Explorer([]).next(request))
    policy = Policy(fallback=(), max_turns=2)
    result = await extract(document, "the errors", mode="read-grep", model=Targets([first, second]), policy=policy)
    assert result.text == "done"
    assert (len(first.requests), len(second.requests)) == (4, 1)


async def test_the_definitions_of_the_tools_take_room_too():
    window = 6_000
    document = stored(LOG)
    model = Explorer([("Read", {"file": document.handle, "limit": 2000})] * 6, context_window=window, max_output_tokens=500)
    await run(document, model)
    definitions = size_of("".join(json.dumps(tool) for tool in FileTools.define(has_file=True))).tokens
    for request in model.requests:
        text = request.system + "".join(message.text for message in request.messages)
        assert size_of(text).tokens + definitions + 500 <= window


async def test_a_model_that_reports_without_looking_has_to_look_first():
    model = Explorer([], "NO RELEVANT DATA FOUND", looks=2)
    result = await run(stored(LOG), model)
    assert [request.tool_choice for request in model.requests] == ["required", "required", "auto"]
    assert model.requests[1].messages[-1] == Message(
        "user", "You have not looked into the file. Call Grep or Read now, and report when you have seen what it says."
    )
    assert model.answers()[0].text.startswith("Lines 1-1 of 2000.")
    assert [message.role for message in model.requests[-1].messages] == ["user", "user", "assistant", "tool"]
    assert not result.found


async def test_time_ends_the_sub_agent():
    model = ScriptedModel(lambda _: "late", latency=30)
    policy = Policy(fallback=(), answer_within_secs=0.05)
    with anyio.fail_after(10), pytest.raises(ExtractionFailed, match=r"The sub-agent had not finished after 0\.05 s"):
        await extract(stored(LOG), "the errors", mode="read-grep", model=once(model), policy=policy)


async def test_the_same_question_is_explored_once():
    document, cache, model = stored(LOG), Cache(), Explorer([])
    first = await extract(document, "the errors", mode="read-grep", model=once(model), cache=cache)
    assert await extract(document, "the errors", mode="read-grep", model=once(model), cache=cache) is first
    assert len(model.requests) == 2
