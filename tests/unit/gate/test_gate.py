"""The gate: what is within the limits passes untouched; what is not is kept whole, and something small stands for it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from frames import TOO_LARGE

from overspill.budget import ContextBudget
from overspill.gate.collect import CollectedResult
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
from overspill.store.spool import Spool
from overspill.types import Output, Reply, ToolCall, Truncation
from overspill.wording import presets as wording


def opened(settings: Settings | None = None, budget: ContextBudget | None = None, *, run_bytes: int | None = None) -> Session:
    store = MemoryStore() if run_bytes is None else MemoryStore(run_bytes=run_bytes)
    return Session(settings or Settings(), store=store, budget=budget)


async def reply_to(result: Any, settings: Settings | None = None, budget: ContextBudget | None = None) -> Reply:
    async with opened(settings, budget) as session:
        return await session.call("search", {}, lambda: result)


async def test_a_small_text_passes():
    reply = await reply_to("small")
    assert (reply.text, reply.content) == ("small", [{"type": "text", "text": "small"}])
    assert (reply.kept, reply.truncation, reply.is_error, reply.fits, reply.new, reply.tokens) == (
        None,
        None,
        False,
        True,
        True,
        1,
    )


@pytest.mark.promise("cheap")
@pytest.mark.parametrize("budget", [None, ContextBudget(window=100_000)])
@pytest.mark.parametrize("result", ["x" * 2048, Output("x" * 2048, original=object()), [{"type": "text", "text": "x" * 2048}]])
async def test_a_small_text_passes_without_being_encoded_measured_or_stored(result: Any, budget: ContextBudget | None):
    def no_spool() -> Spool:
        raise AssertionError("a small text needs no spool")

    got = CollectedResult(no_spool)
    await got.take(result)
    async with opened(budget=budget) as session:
        gate = session._life.parts.gate
        reply = await gate.deliver(ToolCall("", "search"), got, gate.settings.for_tool("search"), for_program=False)
    assert reply.text == "x" * 2048


@pytest.mark.parametrize("budget", [None, ContextBudget(window=100_000)])
@pytest.mark.parametrize("result", ["x" * 12_288, b"x" * 12_288])
async def test_an_output_exactly_at_the_limit_passes(result: Any, budget: ContextBudget | None):
    reply = await reply_to(result, budget=budget)
    assert (reply.text, reply.kept) == ("x" * 12_288, None)


async def test_an_output_one_byte_over_the_limit_is_stored():
    async with opened() as session:
        reply = await session.call("search", {}, lambda: "x" * 12_289)
        assert reply.kept is not None
        assert session.open(reply.kept.handle).bytes() == b"x" * 12_289
    kept = reply.kept
    assert (kept.reason, kept.tool, kept.media, kept.missing, kept.blocks) == ("size_cap", "search", "text", "", ())
    assert kept.sha256 == hashlib.sha256(b"x" * 12_289).hexdigest()
    assert (kept.size.bytes, kept.size.chars, kept.size.lines, kept.size.estimated) == (12_289, 12_289, 1, False)


async def test_a_truncation_is_described_in_figures():
    reply = await reply_to("word " * 6_000, Settings(previewChars=50, truncation={"default_strategy": "head"}))
    assert reply.kept is not None
    assert reply.truncation == Truncation(
        original_size=30_000,
        truncated_size=50,
        strategy_used="head",
        was_truncated=True,
        artifact_id=reply.kept.artifact_id,
        original_tokens=6_001,
        truncated_tokens=13,
        omitted_lines=0,
        omitted_chars=29_972,
    )


@pytest.mark.parametrize(
    ("settings", "text", "reason"),
    [
        (Settings(), "x" * 12_289, "size_cap"),
        (Settings(), "ab1 " * 3_000, None),
        (Settings(asyncTokenThreshold=500), "word " * 600, "token_threshold"),
        (Settings(preset="artifacts"), "é" * 8_001, "char_limit"),
        (Settings(preset="artifacts"), "é" * 8_000, None),
        (Settings(preset="slow"), "word " * 10_001, "token_threshold"),
        (Settings(preset="slow"), "word " * 9_000, None),
        (Settings(preset="tool_output"), "word " * 2_400, None),
    ],
)
async def test_each_limit_names_its_reason(settings: Settings, text: str, reason: str | None):
    reply = await reply_to(text, settings)
    assert (reply.kept and reply.kept.reason) == reason


def tokens(count: int) -> str:
    """A text of exactly that many tokens."""
    return " a" * count


async def test_an_output_that_does_not_fit_the_context_is_stored():
    budget = ContextBudget(window=1000, used=700)
    reply = await reply_to(tokens(301), budget=budget)
    assert reply.kept is not None
    assert (reply.kept.reason, reply.fits) == ("token_budget", True)
    assert budget.reserved == reply.tokens <= 300


async def test_an_output_that_just_fits_the_context_passes():
    budget = ContextBudget(window=1000, used=700)
    reply = await reply_to(tokens(300), budget=budget)
    assert (reply.kept, reply.fits, budget.room) == (None, True, 0)


async def test_an_output_that_would_have_fitted_alone_says_so():
    budget = ContextBudget(window=1000)
    budget.reserve(400)
    reply = await reply_to(tokens(700), budget=budget)
    assert reply.kept is not None
    assert (reply.kept.reason, reply.fits) == ("reserve_failed", True)


async def test_a_small_text_beside_others_takes_its_room_and_no_more():
    budget = ContextBudget(window=1000)
    texts = [{"type": "text", "text": "a word"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]
    reply = await reply_to(texts, budget=budget)
    assert (reply.passed, reply.content, budget.reserved) == (True, texts, 2)
    budget.reserve(997)
    assert (await reply_to(texts, budget=budget)).kept.reason == "reserve_failed"  # type: ignore[union-attr]


async def test_size_goes_before_the_budget_and_a_failed_reservation_before_size():
    budget = ContextBudget(window=3000)
    assert (await reply_to("x" * 100_000, budget=budget)).kept.reason == "size_cap"  # type: ignore[union-attr]
    budget = ContextBudget(window=50_000)
    budget.reserve(49_000)
    assert (await reply_to("x" * 100_000, budget=budget)).kept.reason == "reserve_failed"  # type: ignore[union-attr]


@pytest.mark.promise("no-answer-over-budget")
async def test_the_preview_is_dropped_first_when_there_is_room_for_the_handle_only():
    budget = ContextBudget(window=60)
    reply = await reply_to("word " * 20_000, budget=budget)
    assert reply.kept is not None
    assert reply.text.count("\n") == 1
    assert (reply.fits, budget.reserved == reply.tokens) == (True, True)
    assert reply.truncation is not None
    assert (reply.truncation.strategy_used, reply.truncation.truncated_size) == ("reference", 0)


async def test_a_handle_that_fits_exactly_is_not_reported_as_too_large():
    # A handle is random, and so is how many tokens it takes, within a dozen or so; the frame of a preview takes more than 24.
    needed = (await reply_to("word " * 20_000, Settings(previewChars=0))).tokens
    replies = [await reply_to("word " * 20_000, budget=ContextBudget(window=needed + extra)) for extra in (0, 24)]
    assert [reply.text.count("\n") for reply in replies] == [1, 1]
    assert replies[1].fits


async def test_the_handle_is_shown_even_if_it_does_not_fit():
    budget = ContextBudget(window=10)
    reply = await reply_to("word " * 20_000, budget=budget)
    assert reply.text.startswith(f"{TOO_LARGE} (100000 bytes, 1 line, ")
    assert (reply.fits, budget.room, budget.reserved) == (False, 0, reply.tokens)


async def test_a_tool_that_is_off_passes_whatever_it_returns():
    settings = Settings(truncation={"overrides": {"search": {"off": True}}})
    text = "x" * 3_000_000
    assert (await reply_to(text, settings)).text is text
    budget = ContextBudget(window=1000)
    reply = await reply_to(text, settings, budget)
    assert (reply.text == text, reply.kept, reply.fits, budget.room) == (True, None, False, 0)
    budget = ContextBudget(window=1000)
    reply = await reply_to("small", settings, budget)
    assert (reply.text, reply.fits, budget.reserved) == ("small", True, 1)


async def test_a_tool_that_is_off_passes_even_what_could_not_be_stored():
    off = {"search": {"off": True, "max_artifact_size": 1000}}
    reply = await reply_to("x" * 5000, Settings(truncation={"overrides": off}), ContextBudget(window=100_000))
    assert (reply.text, reply.kept) == ("x" * 5000, None)


async def test_a_long_stream_of_a_tool_that_is_off_passes_and_leaves_nothing_behind():
    async def stream() -> AsyncIterator[str]:
        for _ in range(3):
            yield "é" * 600_000

    store = MemoryStore()
    async with Session(Settings(truncation={"overrides": {"search": {"off": True}}}), store=store) as session:
        reply = await session.call("search", {}, stream)
        assert reply.text == "é" * 1_800_000
        assert (reply.kept, session.counters.kept) == (None, 0)


DISABLED = Settings(toolOutput={"enabled": False})


@pytest.mark.parametrize("result", ["line\n" * 5000, b"line\n" * 5000, [{"type": "text", "text": "line\n" * 5000}]])
async def test_with_storing_disabled_a_large_output_is_cut_with_a_marker(result: Any):
    reply = await reply_to(result, DISABLED)
    assert len(reply.text.encode()) <= 12_288
    assert reply.text.startswith("line\n")
    assert "lines / " in reply.text
    assert reply.kept is None
    assert reply.truncation is not None
    assert (reply.truncation.was_truncated, reply.truncation.artifact_id) == (True, None)
    assert reply.truncation.original_size == 25_000
    assert f"[{reply.truncation.omitted_lines:,} lines / {reply.truncation.omitted_chars:,} chars omitted]" in reply.text


async def test_with_storing_disabled_each_cut_is_logged_with_its_sizes_and_strategy(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "overspill")
    async with opened(DISABLED) as session:
        await session.call("depot__git_log", {}, lambda: "short", server="depot", kind="mcp")
        reply = await session.call("depot__git_log", {}, lambda: "line\n" * 5000, server="depot", kind="mcp")
    (logged,) = [line for line in caplog.records if line.name == "overspill"]
    cut = reply.truncation
    assert cut is not None
    assert (logged.levelname, logged.getMessage()) == (
        "WARNING",
        f"Tool 'depot__git_log' output cut to {len(reply.text)} of 25000 characters (tail).",
    )
    assert (
        vars(logged).items()
        >= {
            "tool": "mcp:depot/git_log",
            "tool_namespace": "depot",
            "provider": "mcp:depot",
            "tool_kind": "mcp",
            "strategy": "tail",
            "original_size": 25_000,
            "truncated_size": len(reply.text),
            "original_tokens": cut.original_tokens,
            "truncated_tokens": cut.truncated_tokens,
            "omitted_lines": cut.omitted_lines,
            "omitted_chars": cut.omitted_chars,
        }.items()
    )
    assert "line\n" not in str(vars(logged))


async def test_with_storing_disabled_a_stream_that_broke_off_says_so():
    async def stream() -> AsyncIterator[str]:
        yield "line\n" * 300_000
        raise OSError("gone")

    async with opened(DISABLED) as session:
        reply = await session.call("search", {}, stream)
        assert session.counters.kept == 0
    assert reply.is_error
    assert reply.text.endswith(
        "\n\n[The tool failed before it finished: OSError: gone. What it had produced by then is above or stored.]"
    )


async def test_with_storing_disabled_nothing_is_stored_for_lack_of_room_either():
    budget = ContextBudget(window=10)
    reply = await reply_to("word " * 1000, DISABLED, budget)
    assert (reply.text, reply.kept, reply.fits) == ("word " * 1000, None, False)
    reply = await reply_to("word " * 10_000, DISABLED, ContextBudget(window=10))
    assert (reply.kept, reply.fits) == (None, False)


async def test_with_storing_disabled_a_large_image_passes():
    image = {"type": "image", "data": "A" * 2_000_000, "mimeType": "image/png"}
    assert (await reply_to([image], DISABLED)).content[0] is image


async def test_binary_output_is_kept_and_summarised():
    data = b"\x89PNG\r\n\x1a\n\0\0"
    async with opened() as session:
        reply = await session.call("shot", {"path": "/tmp/a.png"}, lambda path: data)  # noqa: S108
        assert reply.kept is not None
        assert session.open(reply.kept.artifact_id).bytes() == data
    assert (reply.kept.reason, reply.kept.media) == ("binary", "binary")
    assert reply.text == (
        "A PNG image (10 bytes) is stored but not shown, because it is not text.\n"
        f"[Artifact: {reply.kept.name}] shot: a.png (10 bytes)\n"
        f'Look at it with get_tool_output(id="{reply.kept.name}", mode="raw").'
    )


async def test_the_call_that_an_image_suggests_shows_it():
    data = b"\x89PNG\r\n\x1a\n\0\0"
    async with opened(Settings(maxInlineBlob=10)) as session:
        small, large = [await session.call("shot", {}, lambda data=each: data) for each in (data, data + b"\0")]
        assert small.kept is not None
        assert large.kept is not None
        assert small.text.endswith(f'\nLook at it with get_tool_output(id="{small.kept.name}", mode="raw").')
        shown = await session.invoke("get_tool_output", {"id": small.kept.name, "mode": "raw"})
        assert [block["mimeType"] for block in shown.content if block["type"] == "image"] == ["image/png"]
        assert "Read its bytes with" in large.text  # `raw` shows no image that is larger than maxInlineBlob
        unshown = await session.invoke("get_tool_output", {"id": large.kept.name, "mode": "raw"})
        assert [block["type"] for block in unshown.content] == ["text"]


async def test_binary_output_that_is_not_stored_whole_is_not_shown_as_text_either():
    reply = await reply_to(b"\xff\0" * 1000, Settings(truncation={"max_artifact_size": 500}))
    assert reply.kept is not None
    why = "one output may have at most 500 bytes (truncation.maxArtifactSize)."
    assert reply.text == wording.OVERSPILL.incomplete_output(reply.kept, 2000, why, ["get_tool_output"])


IMAGE = {"type": "image", "data": base64.b64encode(b"\x89PNG" * 10).decode(), "mimeType": "image/png", "odd": {"field": 1}}


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


async def test_blocks_within_the_limit_pass_as_the_same_objects():
    blocks = [text_block("a"), IMAGE, text_block("b")]
    reply = await reply_to(blocks)
    assert all(ours is theirs for ours, theirs in zip(reply.content, blocks, strict=True))
    assert (reply.text, reply.kept) == ("a\nb", None)


async def test_the_text_of_blocks_is_clean_though_the_blocks_are_not_touched():
    block = text_block("a\ud800")
    reply = await reply_to([block])
    assert (reply.text, reply.content[0] is block) == ("a\ufffd", True)


async def test_several_texts_are_kept_as_one_output_and_images_stay_in_place():
    blocks = [IMAGE, text_block("é" * 4000), IMAGE, {"type": "resource", "resource": {"uri": "x", "text": "b" * 5000}}]
    async with opened(Settings(previewChars=0)) as session:
        reply = await session.call("search", {}, lambda: blocks)
        assert reply.kept is not None
        assert session.open(reply.kept.handle).text() == "é" * 4000 + "b" * 5000
    assert (reply.kept.blocks, reply.kept.size.chars) == ((8000,), 9000)
    assert reply.content == [IMAGE, text_block(reply.text), IMAGE]
    assert reply.content[0] is IMAGE
    assert reply.text.startswith(f"{TOO_LARGE} (13000 bytes, ")


async def test_an_oversized_image_is_stored_and_replaced_by_text():
    data = b"\x89PNG" * 100_000
    image = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    async with opened(Settings(maxInlineBlob=300_000), ContextBudget(window=10_000)) as session:
        reply = await session.call("shot", {}, lambda: [text_block("look:"), image, IMAGE])
        assert reply.kept is not None
        assert session.open(reply.kept.handle).bytes() == data
    stands = (
        "Image image/png (400 KB) is stored but not shown, because it is not text.\n"
        f"[Artifact: {reply.kept.name}] shot (400 KB)\n"
        f'Read its bytes with get_tool_output(id="{reply.kept.name}", mode="slice", slice={{"start": 0, "length": 1000}}).'
    )
    assert reply.content == [text_block("look:"), text_block(stands), IMAGE]
    assert reply.text == f"look:\n\n{stands}"
    assert (reply.kept.reason, reply.kept.sha256, reply.fits) == ("binary", hashlib.sha256(data).hexdigest(), True)


async def test_an_oversized_resource_beside_a_stored_text_is_stored_too():
    resource = {"type": "resource", "resource": {"uri": "x", "mimeType": "application/pdf", "blob": "QUJD" * 100}}
    async with opened(Settings(maxInlineBlob=200, previewChars=0)) as session:
        reply = await session.call("search", {}, lambda: [text_block("x" * 20_000), resource])
        assert session.counters.kept == 2
    assert reply.kept is not None
    assert reply.kept.media == "text"
    assert reply.content[1]["text"].startswith("Resource application/pdf (300 bytes) is stored but not shown")
    assert reply.text == "\n\n".join(block["text"] for block in reply.content)


async def test_invalid_base64_is_stored_as_its_characters():
    async with opened(Settings(maxInlineBlob=10)) as session:
        reply = await session.call("shot", {}, lambda: [{"type": "audio", "data": "not base64! " * 10}])
        assert reply.kept is not None
        assert session.open(reply.kept.handle).text() == "not base64! " * 10
    assert reply.content[0]["text"].startswith("Audio (120 bytes) is stored")


async def test_an_image_that_is_not_stored_whole_does_not_claim_to_be():
    settings = Settings(maxInlineBlob=10, truncation={"max_artifact_size": 100})
    reply = await reply_to([{"type": "image", "data": "QUJD" * 100}], settings)
    assert reply.text.startswith(
        "[The output has 300 bytes. Only the first 100 were saved: "
        "one output may have at most 100 bytes (truncation.maxArtifactSize)."
    )


async def test_an_image_that_cannot_be_stored_at_all_says_that():
    async with opened(Settings(maxInlineBlob=10), run_bytes=1) as session:
        await session.keep("x", "filler")
        reply = await session.call("shot", {}, lambda: [{"type": "image", "data": "QUJD" * 100}])
    assert reply.kept is None
    assert reply.text.startswith("[The output has 300 bytes. None of it was saved: ")


async def test_a_large_block_of_an_unknown_kind_is_kept_too():
    reply = await reply_to(Output([{"type": "video", "data": "QUJD" * 500_000}]))
    assert reply.kept is not None
    assert reply.text.startswith("Video (1.5 MB) is stored but not shown, because it is not text.\n")


async def test_an_image_note_that_does_not_fit_is_reported():
    reply = await reply_to([{"type": "image", "data": "QUJD" * 100}], Settings(maxInlineBlob=10), ContextBudget(window=5))
    assert not reply.fits


async def test_an_error_that_a_tool_reports_stays_one_when_it_is_kept():
    reply = await reply_to(Output([text_block("x" * 20_000)], is_error=True))
    assert reply.is_error
    assert reply.kept is not None


async def test_an_output_over_the_maximum_says_what_was_stored():
    text = "".join(f"line {number:05}\n" for number in range(5000))
    reply = await reply_to(text, Settings(toolResponseMaxBytes=200, truncation={"max_artifact_size": 1005}))
    assert reply.kept is not None
    assert reply.kept.size.bytes == 1005
    assert reply.kept.missing == "one output may have at most 1,005 bytes (truncation.maxArtifactSize)."
    shown, note = (block["text"] for block in reply.content)
    assert shown.startswith("line 00000\n")
    assert shown.endswith("line 04999\n")
    assert note == wording.OVERSPILL.incomplete_output(reply.kept, 55_000, reply.kept.missing, ["get_tool_output"])
    assert reply.truncation is not None
    assert reply.truncation.original_size == 55_000
    assert reply.truncation.omitted_chars > 54_000


async def test_a_stream_over_the_maximum_shows_the_stored_part():
    async def stream() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"0123456789" * 100

    async with opened(Settings(truncation={"max_artifact_size": 20_000})) as session:
        reply = await session.call("search", {}, stream)
    assert reply.kept is not None
    assert reply.kept.size.bytes == 20_000
    assert "The output has 100,000 bytes. Only the first 20,000 were saved" in reply.text


@pytest.mark.parametrize("streamed", [False, True])
async def test_json_of_some_megabytes_is_still_json_when_it_is_shortened(streamed: bool):
    rows = [{"path": f"file{number:05}.txt", "text": "x" * 100} for number in range(20_000)]
    data = json.dumps(rows)

    def stream() -> Iterator[str]:
        yield from (data[at : at + 65_536] for at in range(0, len(data), 65_536))

    async with opened(Settings(toolOutput={"enabled": False})) as session:
        reply = await session.call("search_files", {}, stream if streamed else lambda: data)
    shown = json.loads(reply.text)
    assert (shown[0], shown[-1]) == (rows[0], rows[-1])
    assert f"... {20_000 - len(shown) + 1:,} items omitted ..." in shown
    assert len(reply.text) <= 12_288
    assert reply.truncation is not None
    assert reply.truncation.strategy_used == "element"


async def test_an_artifact_over_its_maximum_is_kept_for_its_characters():
    reply = await reply_to("x" * 20_000, Settings("artifacts", truncation={"max_artifact_size": 10_000}))
    assert reply.kept is not None
    assert (reply.kept.reason, reply.kept.size.bytes) == ("char_limit", 10_000)


async def test_a_full_store_still_shows_the_beginning_of_a_stream():
    async with opened(run_bytes=1) as session:
        await session.keep("x", "filler")
        reply = await session.call("search", {}, lambda: b"line\n" * 10_000)
    assert reply.kept is None
    assert reply.text.startswith("line\nline\n")
    assert "[The output has 50,000 bytes. None of it was saved: " in reply.text


async def test_a_stream_that_broke_off_passes_only_if_its_note_fits_too():
    async def stream() -> AsyncIterator[str]:
        yield tokens(50)
        raise OSError("gone")

    note = "[The tool failed before it finished: OSError: gone. What it had produced by then is above or stored.]"
    async with opened(budget=ContextBudget(window=60)) as session:
        reply = await session.call("search", {}, stream)
    assert reply.kept is not None
    assert reply.kept.reason == "reserve_failed"
    assert reply.text.endswith(f"\n\n{note}")
    async with opened(budget=ContextBudget(window=200)) as session:
        reply = await session.call("search", {}, stream)
    assert (reply.text, reply.kept, reply.is_error) == (f"{tokens(50)}\n\n{note}", None, True)


async def test_arguments_that_are_not_json_do_not_prevent_storing():
    async with opened() as session:
        reply = await session.call("search", {"q": object()}, lambda q: "x" * 20_000)
    assert reply.kept is not None
