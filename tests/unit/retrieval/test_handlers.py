"""The four tools when a model calls them: exact, bounded, within the room that is left, only for their own session."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.from_thread
import pytest
from extras import OFFERED
from frames import parted

from overspill.budget import ContextBudget
from overspill.record.events import OutputRetrieved, decode_events
from overspill.retrieval.definitions import TOOLS
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Reader
from overspill.types import ToolCall
from overspill.wording import retrieval

NEVER = "art_1794717193124_30de8211e5e402e61f9"


def opened(settings: Settings | None = None, **options: Any) -> Session:
    return Session(settings or Settings(), store=MemoryStore(), **options)


@pytest.mark.parametrize("surface", [["get_artifact"], ["tool_output"], []])
async def test_all_four_tools_work_whatever_is_offered(surface: list[str]):
    async with opened(Settings(surface=surface, async_=False)) as session:
        kept = await session.keep("first\nsecond\n", "note")
        calls: list[tuple[str, dict[str, Any], str]] = [
            ("get_artifact", {"artifact_id": kept.artifact_id, "lines": "2-2"}, "second\n"),
            ("get_tool_output", {"id": kept.handle, "mode": "raw"}, "first\nsecond\n"),
            ("wait_for_tool_output", {}, "No async tools running."),
            ("tool_output", {"handle": kept.handle, "extract": "second"}, "ABSTRACT FROM TOOL OUTPUT note WITH HANDLE"),
        ]
        for name, args, text in calls:
            reply = await session.invoke(name, args)
            assert (reply.text.startswith(text), reply.is_error) == (True, False)
            assert (await session.call(name, args)).text.startswith(text)
        assert [tool["name"] for tool in session.tools()] == surface


async def test_both_spellings_name_the_same_output():
    async with opened() as session:
        kept = await session.keep("text", "note")
        for args in ({"artifact_id": kept.handle}, {"id": kept.artifact_id}, {"artifact_id": kept.id, "id": ""}):
            assert (await session.invoke("get_artifact", args)).text == "text"


UNKNOWN = (
    f"No stored output has the handle '{NEVER}', or none that may be read from here. "
    "It may have expired; use handles exactly as they were given."
)
MALFORMED = (
    "is not a handle. A handle looks like session-<uuid>/<uuid>, a name like out_3f7k9q, "
    "an artifact id like art_<milliseconds>_<hex>."
)


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("get_artifact", {"id": NEVER}, f"404: {UNKNOWN}"),
        ("get_artifact", {"id": "../etc/passwd"}, f"400: '../etc/passwd' {MALFORMED}"),
        ("get_artifact", {}, "400: artifact_id is missing. Use the id in the [Artifact: …] line."),
        ("get_tool_output", {"id": NEVER, "mode": "raw"}, f"Unknown tool ID: {NEVER}"),
        ("get_tool_output", {"id": "", "mode": "raw"}, "id is empty. Use the id that the tool result gave."),
        ("get_tool_output", {"id": "x9", "mode": "raw"}, "Unknown tool ID: x9"),
        ("get_tool_output", {"id": "x" * 500, "mode": "raw"}, f"Unknown tool ID: {'x' * 99}…"),
        (
            "delete_everything",
            {},
            "Unknown tool 'delete_everything'. Known tools: tool_output, get_tool_output, wait_for_tool_output, get_artifact, "
            "run_program.",
        ),
    ],
)
async def test_what_cannot_be_found_is_an_answer(name: str, args: dict[str, Any], text: str):
    async with opened() as session:
        reply = await session.invoke(name, args)
        assert (reply.text, reply.is_error) == (text, True)
        assert session.counters.failed_retrievals == 1


TRICKS = [
    "..", "../..", "/etc/passwd", "session-x/../../etc/passwd", "%2e%2e%2fetc", "a\0b", "session-\n/x", "", " ", "C:\\x", "~",
    "art_0000000000000_0000000000000000000", "art_9999999999999999_0", "\ud800",
]  # fmt: skip


@pytest.mark.promise("nobody-elses")
@pytest.mark.parametrize("trick", TRICKS)
async def test_path_tricks_are_refused_by_every_tool(trick: str):
    async with opened() as session:
        for name, args in (
            ("get_artifact", {"id": trick}),
            ("get_artifact", {"artifact_id": trick, "query": "a"}),
            ("get_tool_output", {"id": trick, "mode": "raw"}),
            ("get_tool_output", {"id": trick, "mode": "grep", "pattern": "root"}),
        ):
            reply = await session.invoke(name, args)
            assert reply.is_error
            assert "root:" not in reply.text
        reply = await session.invoke("tool_output", {"handle": trick, "extract": "x"})
        assert reply.is_error or "Nothing was searched" in reply.text
        with pytest.raises(Exception, match="is not a handle"):
            session.open(trick)


@pytest.mark.parametrize("number", ["1" * 5000, 10**30, -(10**30), "1e400"])
@pytest.mark.parametrize(
    "args",
    [
        lambda n: ("get_artifact", {"start_line": n}),
        lambda n: ("get_artifact", {"bytes": f"0-{n}"}),
        lambda n: ("get_artifact", {"lines": str(n)}),
        lambda n: ("get_tool_output", {"mode": "slice", "slice": {"start": n}}),
        lambda n: ("get_tool_output", {"mode": "slice", "slice": {"anchor": "a", "window": n}}),
        lambda n: ("get_tool_output", {"mode": "slice", "slice": {"anchor": "a", "match_index": n}}),
        lambda n: ("get_tool_output", {"mode": "grep", "pattern": "a", "from": n}),
        lambda n: ("get_tool_output", {"mode": "grep", "pattern": "a", "context": n}),
    ],
)
async def test_numbers_beyond_reason_are_answers_too(args: Any, number: Any):
    async with opened() as session:
        kept = await session.keep("a\nb\n", "note")
        name, more = args(number)
        reply = await session.invoke(name, {"id": kept.artifact_id, **more})
        assert len(reply.text) < 1000


async def test_raw_is_refused_above_the_limits_that_kept_it():
    async with opened() as session:
        kept = await session.keep("x" * 20_000, "note")
        reply = await session.invoke("get_tool_output", {"id": kept.artifact_id, "mode": "raw"})
        assert (reply.text, reply.is_error) == ("Response too large (20000 bytes). Use ask or slice mode.", True)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(preset="slow"),
        Settings(toolResponseMaxBytes=0),
        Settings(truncation={"overrides": {"search": {"toolResponseMaxBytes": 100_000}}}),
        Settings(truncation={"overrides": {"search": {"off": True}}}),
    ],
)
async def test_raw_gives_whole_what_would_have_passed_at_once(settings: Settings):
    text = "".join(f"line {n} of a text that passes\n" for n in range(900))
    async with opened(settings) as session:
        assert (await session.call("search", {}, lambda: text)).text == text
        id = await session.start("search", {}, lambda: text)
        await session.invoke("wait_for_tool_output", {})
        assert "exceeds threshold" not in session.notice()
        assert (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text == text


async def test_raw_gives_of_what_would_have_passed_what_there_is_room_for():
    text = "word " * 8000
    async with opened(Settings(preset="slow"), budget=ContextBudget(2000, reserve_output=0, buffer=0)) as session:
        id = await session.start("search", {}, lambda: text)
        await session.invoke("wait_for_tool_output", {})
        reply = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert reply.fits
        assert parted(reply.text)[0].startswith("word word ")
        assert f'Next: get_tool_output(id="{id}", mode="slice", slice={{"start": ' in reply.text


async def test_raw_gives_cut_what_would_have_been_cut_at_once():
    text = "".join(f"line {n}\n" for n in range(9000))
    async with opened(Settings(toolOutput={"enabled": False}, toolResponseMaxBytes=500)) as session:
        at_once = await session.call("search", {}, lambda: text)
        assert "lines / " in at_once.text
        id = await session.start("search", {}, lambda: text)
        await session.invoke("wait_for_tool_output", {})
        reply = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert (reply.text, reply.is_error) == (at_once.text, False)


async def test_extract_finds_what_the_query_asks_for():
    async with opened() as session:
        kept = await session.keep("alpha\nbeta needle\ngamma\n" * 3, "note")
        reply = await session.invoke("get_tool_output", {"id": kept.artifact_id, "mode": "extract", "query": "needle"})
        assert not reply.is_error
        assert "needle" in reply.text


@pytest.mark.parametrize("settings", [Settings(), Settings(preset="artifacts"), Settings(answerMaxBytes=1000)])
async def test_an_answer_is_at_most_its_bound(settings: Settings):
    async with opened(settings) as session:
        kept = await session.keep("é" * 100_000 + "\nanchor\n" + "{}" * 50_000, "note")
        id = kept.artifact_id
        for name, args in (
            ("get_artifact", {"id": id}),
            ("get_artifact", {"id": id, "bytes": "0-150000"}),
            ("get_tool_output", {"id": id, "mode": "slice"}),
            ("get_tool_output", {"id": id, "mode": "slice", "slice": {"anchor": "anchor", "window": 90_000}}),
            ("get_tool_output", {"id": id, "mode": "grep", "pattern": "é|anchor"}),
        ):
            reply = await session.invoke(name, args)
            assert not reply.is_error
            assert len(reply.text.encode()) <= (settings.answer_max_bytes or 1 << 40)
            assert len(reply.text) <= (settings.answer_max_chars or 1 << 40)


NEXT = re.compile(r'Next: get_artifact\(id="(\S+)", (bytes|lines)="(\S+)"\)\]$')


@pytest.mark.promise("no-answer-over-budget")
async def test_an_answer_shrinks_to_the_room_that_is_left_and_says_how_to_go_on():
    budget = ContextBudget(window=600)
    async with opened(budget=budget) as session:
        text = "word " * 5000
        kept = await session.keep(text, "note")
        reply = await session.invoke("get_artifact", {"id": kept.artifact_id})
        assert reply.fits
        assert reply.tokens == budget.reserved <= 600
        found = NEXT.search(reply.text)
        assert found
        shown = parted(reply.text)[0]
        assert len(shown) > 500
        assert found.groups() == (kept.name, "bytes", f"{len(shown)}-{len(text) - 1}")


async def test_when_not_even_the_way_to_go_on_fits_the_host_is_told():
    async with opened(budget=ContextBudget(window=20)) as session:
        kept = await session.keep("word " * 5000, "note")
        reply = await session.invoke("get_artifact", {"id": kept.artifact_id})
        assert not reply.fits
        assert "Next: " in reply.text


@pytest.mark.promise("no-answer-over-budget")
async def test_retrievals_of_one_turn_share_the_room():
    budget = ContextBudget(window=3000)
    async with opened(budget=budget) as session:
        kept = await session.keep("word " * 5000, "note")
        calls = [ToolCall(str(n), "get_artifact", {"id": kept.artifact_id}) for n in range(4)]
        replies = await session.turn(calls, lambda call: "")
        assert sum(reply.tokens for reply in replies if reply.fits) <= 3000
        assert [reply.fits for reply in replies].count(True) >= 1
        assert budget.reserved == sum(reply.tokens for reply in replies)
        assert all(reply.tokens < 150 for reply in replies if not reply.fits)


async def test_more_retrievals_at_once_than_outputs_are_held_open():
    async with opened() as session:
        kept = [await session.keep(f"text {number}", "note") for number in range(40)]
        calls = [ToolCall(str(n), "get_artifact", {"id": each.artifact_id}) for n, each in enumerate(kept)]
        replies = await session.turn(calls, lambda call: "")
        assert [reply.text for reply in replies] == [f"text {number}" for number in range(40)]


class EndsTheTool(MemoryStore):
    """The tool ends when what it has produced so far is opened."""

    end: Callable[[], Awaitable[Any]]

    def open_shelf(self, *given: Any, **options: Any) -> Any:
        shelf, store = super().open_shelf(*given, **options), self
        opened = shelf.open

        def open(id: str) -> Reader:
            reader = opened(id)
            if hasattr(store, "end"):
                end = store.end
                del store.end
                anyio.from_thread.run(end)
            return reader

        shelf.open = open
        return shelf


async def test_a_tool_that_ends_while_its_output_is_read_is_answered_as_ended():
    go, store = anyio.Event(), EndsTheTool()

    async def stream() -> AsyncIterator[str]:
        yield "first line\n"
        await go.wait()
        yield "last line\n"

    async with Session(Settings(), store=store) as session:
        id = await session.start("tail", {}, stream)
        await anyio.wait_all_tasks_blocked()

        async def end() -> None:
            go.set()
            await session.invoke("get_tool_output", {"id": id, "mode": "wait"})

        store.end = end
        reply = await session.invoke("get_tool_output", {"id": id, "mode": "slice"})
        content, note = parted(reply.text)
        assert content == "first line\nlast line\n"
        assert "still running" not in note


async def test_a_stream_that_is_still_running_can_be_read_so_far():
    yielded, finish = anyio.Event(), anyio.Event()

    async def stream() -> AsyncIterator[str]:
        yield "one\ntwo\n"
        yielded.set()
        await finish.wait()
        yield "three\n"

    async with opened() as session:
        id = await session.start("tail", {}, stream)
        await yielded.wait()
        reply = await session.invoke("get_tool_output", {"id": id, "mode": "slice"})
        content, note = parted(reply.text)
        assert content == "one\ntwo\n"
        assert re.fullmatch(r"\[Partial: the tool is still running \(\d\.\ds\) and has produced 8 bytes so far\.\]", note)
        reply = await session.invoke("get_tool_output", {"id": id, "mode": "grep", "pattern": "two", "context": 0})
        assert parted(reply.text)[1].startswith("[1 of 1 matching lines in bytes 0-8 of 8.]")
        reply = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert (reply.text, reply.is_error) == (retrieval.not_ready(), True)
        finish.set()
        await session.invoke("wait_for_tool_output", {})
        assert (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text == "one\ntwo\nthree\n"


async def test_waiting_tells_what_still_runs():
    async with opened(Settings(waitMaxSecs=0.05)) as session:
        id = await session.start("crawl", {}, anyio.sleep_forever)
        reply = await session.invoke("wait_for_tool_output", {})
        assert re.fullmatch(rf"Still running:\n- crawl \(id: {id}, running \d\.\ds\)", reply.text)
        assert "### Running (1)" in session.notice()


async def test_a_job_that_failed_answers_with_its_failure():
    def fails() -> None:
        raise ValueError("no such page")

    async with opened() as session:
        id = await session.start("crawl", {}, fails)
        waited = await session.invoke("wait_for_tool_output", {})
        assert waited.text == f"Completed tools:\n- crawl (id: {id}, failed: ValueError: no such page)"
        for mode in ("raw", "slice"):
            reply = await session.invoke("get_tool_output", {"id": id, "mode": mode})
            assert (reply.text, reply.is_error) == ("Tool failed: ValueError: no such page", True)


@pytest.mark.parametrize(
    ("args", "tool", "strategy", "said"),
    [
        ({"handle": "HANDLE"}, "note", "auto", "Object missing required field `extract`"),
        ({"handle": "HANDLE", "extract": "x", "mode": "magic"}, "note", "auto", "Invalid enum value 'magic'"),
        ({"handle": "HANDLE", "mode": "truncate"}, "note", "truncate", "Object missing required field `extract`"),
        ({"handle": "HANDLE", "extract": "x", "mode": "raw"}, "note", "auto", "Invalid enum value 'raw'"),
        ({"handle": "HANDLE", "extract": "x", "depth": 1}, "note", "auto", "Object contains unknown field `depth`"),
        ({"handle": NEVER, "extract": ""}, "unknown", "auto", "Expected `str` of length >= 1"),
        ({"extract": "x"}, "unknown", "auto", "Object missing required field `handle`"),
        ({"handle": ["x\n"], "extract": "x", "mode": ["auto"]}, "unknown", "auto", "Expected `str`, got `array`"),
    ],
)
async def test_invalid_arguments_of_tool_output_are_answered_in_its_form_of_failure(
    args: dict[str, Any], tool: str, strategy: str, said: str
):
    async with opened() as session:
        kept = await session.keep("first\nsecond\n", "note")
        args = {key: kept.handle if value == "HANDLE" else value for key, value in args.items()}
        reply = await session.invoke("tool_output", args)
        head, _, error = reply.text.partition("\n\n")
        named = args.get("handle", "unknown")
        shown = named if isinstance(named, str) else r"['x\n']"
        assert head == f"TOOL_OUTPUT FAILED FOR {tool} WITH HANDLE {shown}, STRATEGY:{strategy}:"
        assert error.startswith(f"Invalid arguments for tool_output: {said}")
        assert reply.is_error


@pytest.mark.parametrize("state", ["running", "failed"])
async def test_every_tool_says_of_a_job_without_an_output_how_it_stands(state: str):
    def fails() -> None:
        raise ValueError("no such page")

    async with opened() as session:
        id = await session.start("crawl", {}, anyio.sleep_forever if state == "running" else fails)
        if state == "failed":
            await session.invoke("wait_for_tool_output", {})
        said = retrieval.not_ready() if state == "running" else "Tool failed: ValueError: no such page"
        reply = await session.invoke("tool_output", {"handle": id, "extract": "pages"})
        assert (reply.text, reply.is_error) == (f"TOOL_OUTPUT FAILED FOR crawl WITH HANDLE {id}, STRATEGY:auto:\n\n{said}", True)
        reply = await session.invoke("get_artifact", {"id": id})
        assert (reply.text, reply.is_error) == (f"400: {said}", True)
        reply = await session.call("send", {"text": f"{{{{output:{id}}}}}"}, lambda text: text)
        assert reply.text == f"The argument /text cannot be filled in: {said} The tool send was not called."


@pytest.mark.parametrize("preset", ["artifacts", "tool_output"])
@pytest.mark.parametrize(
    "slow", [{"async": True}, {"servers": {"db": {"async": True}}}, {"truncation": {"overrides": {"sql": {"async": True}}}}]
)
async def test_where_a_tool_may_go_to_the_background_the_tools_to_wait_for_it_are_offered(preset: str, slow: dict[str, Any]):
    async with opened(Settings(preset=preset)) as session:
        never = {tool["name"] for tool in session.tools()}
    async with opened(Settings(preset=preset, **slow)) as session:
        assert {tool["name"] for tool in session.tools()} == never | {"get_tool_output", "wait_for_tool_output"}


async def test_in_the_slow_preset_the_notice_lists_what_a_model_only_knows_the_id_of():
    async with opened(Settings(preset="slow")) as session:
        reply = await session.call("search", {}, lambda: "word " * 45_000)
        await session.keep("of the host", "note")
        assert reply.kept is not None
        id = reply.kept.artifact_id
        assert session.notice() == (
            "## Async Tool Status\n\n"
            f"### Ready (1)\n- search (id: {id}, ~45K tokens, exceeds threshold)\n\n"
            'Use get_tool_output(id, "raw"|"extract"|"slice") to retrieve.\n'
            "Use wait_for_tool_output() to block until a running tool completes."
        )
        await session.invoke("get_tool_output", {"id": id, "mode": "slice", "slice": {"start": 0, "length": 5}})
        assert f"- search (id: {id}, ~45K tokens, exceeds threshold, 1 retrieval performed)" in session.notice()


async def test_a_background_output_over_the_threshold_is_marked():
    async with opened() as session:
        id = await session.start("search", {}, lambda: "word " * 45_000)
        await session.invoke("wait_for_tool_output", {})
        assert f"### Ready (1)\n- search (id: {id}, ~45K tokens, exceeds threshold)" in session.notice()


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (Settings(), OFFERED),
        (Settings(preset="tool_output"), ["tool_output"]),
        (Settings(preset="artifacts"), ["get_artifact"]),
        (Settings(preset="slow"), ["get_tool_output", "wait_for_tool_output"]),
    ],
)
@pytest.mark.promise("cache-safe")
async def test_the_offered_tools_never_change(settings: Settings, names: list[str]):
    async with opened(settings) as session:
        first = json.dumps(session.tools())
        assert [tool["name"] for tool in session.tools()] == names
        await session.call("search", {}, lambda: "small")
        await session.keep("x", "note")
        await session.start("crawl", {}, anyio.sleep_forever)
        assert json.dumps(session.tools()) == first


async def test_retrievals_are_on_record_with_what_they_showed():
    async with opened() as session:
        kept = await session.keep("0123456789", "note")
        await session.invoke("get_artifact", {"id": kept.artifact_id, "bytes": "2-4"})
        await session.invoke("get_tool_output", {"id": NEVER, "mode": "raw"})
        session.op_tree()
        first, second = (
            event for event in decode_events(session._life.parts.shelf.journal()) if isinstance(event, OutputRetrieved)
        )
        assert (first.tool, first.mode, first.status, first.id, first.start, first.end, first.chars_out) == (
            "get_artifact", "", "ok", kept.id, 2, 5, 3,
        )  # fmt: skip
        assert (second.tool, second.mode, second.status, second.id) == ("get_tool_output", "raw", "failed", "")
        assert session.counters.retrieved_in_full == 0
        await session.invoke("get_artifact", {"id": kept.artifact_id})
        assert session.counters.retrieved_in_full == 1


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize(
    "args",
    [
        {"id": 5},
        {"id": ["x"]},
        {"id": {"a": 1}},
        {"handle": 5, "extract": []},
        {"mode": [1]},
        {"slice": "x"},
        {"a" * 1000: 1},
    ],
)
async def test_arguments_of_any_type_get_an_answer(name: str, args: dict[str, Any]):
    async with opened() as session:
        reply = await session.invoke(name, args)
        assert reply.is_error
        assert len(reply.text) < 2000
