"""What is within the limits passes untouched: every string, every field, every block the very same object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overspill import ContextBudget, Output, Session, Settings

PRESETS = ["overspill", "tool_output", "artifacts", "slow"]


@pytest.mark.promise("small-things-untouched")
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("window", [None, 100_000])
async def test_a_small_text_is_the_same_in_every_character(tmp_path: Path, preset: str, window: int | None):
    texts = [
        "",
        " ",
        "\r\n\r",
        "tab\tand\0nul",
        "é€😀\u200b\ufeff",
        "a" * 7_999,
        "{'not': json",
        "\x1b[31mred\x1b[0m",
        "... [1 lines / 2 chars omitted] ...",
    ]
    budget = None if window is None else ContextBudget(window=window)
    async with Session(Settings(preset=preset, storeDir=str(tmp_path)), budget=budget) as session:
        for text in texts:
            reply = await session.call("read", {}, lambda text=text: text)
            assert reply.text == text
            assert reply.content == [{"type": "text", "text": text}]
            assert (reply.kept, reply.truncation, reply.job, reply.is_error, reply.fits, reply.new) == (
                None,
                None,
                None,
                False,
                True,
                True,
            )
        assert session.counters.truncated == 0


BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "caption\r\n", "annotations": {"audience": ["user"]}, "_meta": {"x": 1}, "unknown": [1, {"two": 2}]},
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "future": {"alpha": True}},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}},
    {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "AAEC"}},
    {"type": "resource_link", "uri": "file:///c", "name": "c", "description": "d", "size": 5},
    {"type": "text", "text": ""},
]


@pytest.mark.promise("small-things-untouched")
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("is_error", [False, True])
async def test_blocks_pass_as_the_very_objects_the_tool_returned(tmp_path: Path, preset: str, is_error: bool):
    before = repr(BLOCKS)
    async with Session(Settings(preset=preset, storeDir=str(tmp_path))) as session:
        for result in (BLOCKS, tuple(BLOCKS)):
            reply = await session.call("look", {}, lambda result=result: Output(list(result), is_error) if is_error else result)
            assert len(reply.content) == len(BLOCKS)
            assert all(ours is theirs for ours, theirs in zip(reply.content, BLOCKS, strict=True))
            assert (reply.text, reply.is_error, reply.kept) == ("caption\r\n\ninside\n", is_error, None)
    assert repr(BLOCKS) == before


async def test_objects_of_the_mcp_sdk_pass_as_the_very_objects(tmp_path: Path):
    types = pytest.importorskip("mcp_types")
    blocks = [
        types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
        types.TextContent(type="text", text="hello"),
        types.ResourceLink(type="resource_link", uri="file:///x", name="x"),
        types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
    ]
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("look", {}, lambda: blocks)
        assert all(ours is theirs for ours, theirs in zip(reply.content, blocks, strict=True))


async def test_an_image_up_to_the_limit_passes_also_beside_a_text_that_is_kept(tmp_path: Path):
    image = {"type": "image", "data": "A" * 1_333_332, "mimeType": "image/png"}
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("look", {}, lambda: [image, {"type": "text", "text": "x" * 20_000}])
        assert reply.content[0] is image
        assert reply.kept is not None


async def test_a_tool_that_is_off_or_of_a_server_that_is_off_passes_whatever_it_returns(tmp_path: Path):
    settings = Settings(
        storeDir=str(tmp_path),
        truncation={"overrides": {"Dump": {"off": True}}},
        servers={"trusted": {"off": True}},
    )
    text = "x" * 500_000
    async with Session(settings) as session:
        assert (await session.call("dump", {}, lambda: text)).text is text
        assert (await session.call("other", {}, lambda: text, server="trusted")).text is text
        assert (await session.call("other", {}, lambda: text)).kept is not None


async def test_arguments_reach_the_tool_as_they_are(tmp_path: Path):
    value = {"nested": ["{{output:", "\\{{output:x}}", object()]}
    seen: list[Any] = []
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        await session.call("tool", {"value": value["nested"][2], "text": "é"}, lambda value, text: seen.append((value, text)))
    assert seen == [(value["nested"][2], "é")]
