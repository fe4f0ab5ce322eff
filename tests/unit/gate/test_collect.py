"""Collecting: whatever a tool returns becomes one measured text and the blocks round it, and nothing is made up."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from threading import Event
from typing import Any
from uuid import UUID

import anyio
import msgspec
import pytest

from overspill import handles
from overspill.gate.collect import CollectedResult, block_text, describe, is_blocks
from overspill.gate.serialise import to_json
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Shelf
from overspill.store.spool import MEMORY, Spool
from overspill.types import Output


@pytest.fixture
def shelf() -> Shelf:
    return MemoryStore().open_shelf(handles.new())


@pytest.fixture
def got(shelf: Shelf) -> CollectedResult:
    return CollectedResult(lambda: Spool(shelf, handles.new()))


def content(got: CollectedResult) -> bytes:
    return got.spool.read(0, got.spool.total)


@dataclass
class Point:
    x: int
    label: str


class Row(msgspec.Struct):
    id: int
    tags: list[str]


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "The tool returned no output."),
        ({"b": 1, "a": "é"}, '{"b":1,"a":"é"}'),
        ([1, 2.5, True, None], "[1,2.5,true,null]"),
        ((1, 2), "[1,2]"),
        ([], "[]"),
        (5, "5"),
        (2**80, "1208925819614629174706176"),
        (0.1, "0.1"),
        (False, "false"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Point(1, "a"), '{"x":1,"label":"a"}'),
        ([Point(1, "a")], '[{"x":1,"label":"a"}]'),
        (Row(7, ["x"]), '{"id":7,"tags":["x"]}'),
        (datetime(2026, 11, 15, 4, 26, tzinfo=UTC), '"2026-11-15T04:26:00Z"'),
        ({"day": date(2026, 11, 15), "price": Decimal("1.10")}, '{"day":"2026-11-15","price":"1.10"}'),
        ({"id": UUID(int=1), "kind": Colour.RED}, '{"id":"00000000-0000-0000-0000-000000000001","kind":"red"}'),
        ({"raw": b"\x00\xff"}, '{"raw":"AP8="}'),
        ({1: "one"}, '{"1":"one"}'),
        ("nul \0 inside", "nul \0 inside"),
        ({"a": "\ud800"}, '{"a":"\ud800"}'),
    ],
)
async def test_a_value_becomes_one_string(got: CollectedResult, result: Any, text: str):
    await got.take(result)
    assert got.plain == text
    assert content(got) == text.encode("utf-8", "surrogatepass")
    assert (got.is_error, got.error, got.media, got.content, got.complete) == (False, None, "text", None, True)


async def test_a_large_value_is_stored_in_pieces_and_whole(got: CollectedResult):
    value = {"rows": [{"id": number, "name": "é" * 20} for number in range(30_000)]}
    await got.take(value)
    assert (got.plain, got.complete, got.is_error) == (None, True, False)
    assert content(got) == to_json(value).encode()


async def test_a_large_value_that_cannot_be_written_leaves_nothing_but_the_reason(got: CollectedResult):
    await got.take([*range(30_000), object()])
    assert got.is_error
    assert got.plain is not None
    assert got.plain.startswith("The tool returned a value of type list, which cannot be written as JSON: ")
    assert content(got) == got.plain.encode()


async def test_many_blocks_are_taken_like_a_few(got: CollectedResult):
    blocks = [{"type": "text", "text": f"{number},"} for number in range(3_000)]
    await got.take(blocks)
    assert content(got) == "".join(f"{number}," for number in range(3_000)).encode()
    assert (len(got.boundaries), got.boundaries[:2]) == (2_999, (2, 4))


async def test_a_text_passes_as_the_same_object(got: CollectedResult):
    text = "é" * 10
    await got.take(text)
    assert got.plain is text


async def test_a_pydantic_model_becomes_json_with_its_aliases(got: CollectedResult):
    pydantic = pytest.importorskip("pydantic")
    inner = pydantic.create_model("Inner", when=(datetime, ...))
    outer = pydantic.create_model("Outer", items=(list[inner], pydantic.Field(alias="theItems")))
    value = outer(theItems=[{"when": "2026-11-15T00:00:00Z"}])
    await got.take(value)
    assert got.plain == '{"theItems":[{"when":"2026-11-15T00:00:00Z"}]}'
    assert to_json({"nested": value}) == '{"nested":{"theItems":[{"when":"2026-11-15T00:00:00Z"}]}}'


@pytest.mark.parametrize(
    ("value", "kind"),
    [(object(), "object"), ({"f": PurePosixPath}, "dict"), ([{1, 2}, {(1, 2): 3}], "list"), (map(str, [1]), "map")],
)
async def test_a_value_that_cannot_be_written_as_json_is_an_error_that_says_so(got: CollectedResult, value: Any, kind: str):
    await got.take(value)
    assert got.is_error
    assert got.plain is not None
    assert got.plain.startswith(f"The tool returned a value of type {kind}, which cannot be written as JSON: ")
    assert got.plain.endswith(". Return text, bytes, JSON values or content blocks.")
    assert isinstance(got.error, TypeError)
    assert str(got.error) == got.plain


async def test_a_structure_that_contains_itself_is_an_error_that_says_so(got: CollectedResult):
    value: list[Any] = []
    value.append(value)
    await got.take(value)
    assert got.is_error
    assert "Circular reference detected" in (got.plain or "")


async def test_a_structure_nested_too_deeply_is_an_error_that_says_so(got: CollectedResult):
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    await got.take(value)
    assert got.is_error
    assert (got.plain or "").startswith(
        "The tool returned a value of type list, which cannot be written as JSON: maximum recursion"
    )
    while value:
        value = value[0]


async def test_a_large_structure_nested_too_deeply_is_an_error_that_says_so(got: CollectedResult):
    value: list[Any] = []
    text = "x" * 20_000
    for _ in range(5_000):
        value = [text, value]
    await got.take(value)
    assert got.is_error
    assert (got.plain or "").startswith(
        "The tool returned a value of type list, which cannot be written as JSON: more than a thousand levels. "
    )


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview], ids=["bytes", "bytearray", "memoryview"])
@pytest.mark.parametrize(
    ("data", "media"),
    [
        ("Zürich\n".encode(), "text"),
        (b"", "text"),
        (b"\x89PNG\r\n\x1a\n\0\0", "binary"),
        (b"text with a NUL \0", "binary"),
        (b"\xff\xfe", "binary"),
        ("\ud800".encode("utf-8", "surrogatepass"), "text"),
        (b"a" * (64 * 1024 - 1) + "é".encode(), "text"),
    ],
)
async def test_bytes_are_text_if_they_can_be_decoded(got: CollectedResult, form: Any, data: bytes, media: str):
    await got.take(form(data))
    assert (got.media, got.plain, content(got)) == (media, None, data)


async def test_a_view_of_every_second_byte_is_just_those_bytes(got: CollectedResult):
    await got.take(memoryview(b"a-b-c-")[::2])
    assert (content(got), got.is_error) == (b"abc", False)


async def test_a_view_of_numbers_is_its_bytes(got: CollectedResult):
    await got.take(memoryview(b"abcdefgh").cast("I"))
    assert content(got) == b"abcdefgh"


async def chunks_of(*chunks: Any) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


def generated(*chunks: Any) -> Iterator[Any]:
    yield from chunks


@pytest.mark.parametrize("stream", [chunks_of, generated])
async def test_a_stream_of_text_and_bytes_is_joined(got: CollectedResult, stream: Any):
    await got.take(stream("Zü", b"r", bytearray(b"i"), memoryview(b"ch"), "", "\ud800"))
    assert content(got) == "Zürich\ud800".encode("utf-8", "surrogatepass")
    assert (got.media, got.is_error, got.complete) == ("text", False, True)


@pytest.mark.parametrize("stream", [chunks_of, generated])
async def test_an_empty_stream_is_an_empty_string(got: CollectedResult, stream: Any):
    await got.take(stream())
    assert (content(got), got.media, got.is_error) == (b"", "text", False)


@pytest.mark.parametrize("stream", [chunks_of, generated])
async def test_a_character_split_between_chunks_stays_whole(got: CollectedResult, stream: Any):
    await got.take(stream(b"\xe2\x82", b"\xac"))
    assert (content(got).decode(), got.media, got.spool.size.chars) == ("€", "text", 1)


@pytest.mark.parametrize("stream", [chunks_of, generated])
async def test_a_long_stream_goes_to_the_store_while_it_flows(got: CollectedResult, stream: Any):
    data = b"0123456789abcdef" * (MEMORY // 16)
    await got.take(stream(data, data, data, b"end"))
    assert not got.spool.in_memory
    sealed = got.spool.seal()
    assert sealed.sha256 == hashlib.sha256(data * 3 + b"end").hexdigest()


class Ended(RuntimeError):
    pass


async def failing(*chunks: Any) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
    raise Ended("the peer hung up")


def failing_generator(*chunks: Any) -> Iterator[Any]:
    yield from chunks
    raise Ended("the peer hung up")


@pytest.mark.parametrize("stream", [failing, failing_generator])
async def test_a_stream_that_fails_half_way_leaves_what_it_had_produced(got: CollectedResult, stream: Any):
    await got.take(stream("one ", "two"))
    assert (content(got), got.broke_off, got.plain) == (b"one two", "Ended: the peer hung up", None)
    assert got.is_error
    assert isinstance(got.error, Ended)


@pytest.mark.parametrize("stream", [failing, failing_generator])
async def test_a_stream_that_fails_before_its_first_chunk_is_a_failure(got: CollectedResult, stream: Any):
    await got.take(stream())
    assert (got.plain, got.broke_off, got.is_error) == ("Tool failed: Ended: the peer hung up", "", True)
    assert content(got) == b"Tool failed: Ended: the peer hung up"


@pytest.mark.parametrize("stream", [failing, failing_generator])
async def test_a_stream_that_fails_after_5_mb_loses_none_of_them(got: CollectedResult, stream: Any):
    await got.take(stream(*[b"x" * 500_000] * 10))
    assert (got.spool.size.bytes, got.broke_off) == (5_000_000, "Ended: the peer hung up")


@pytest.mark.parametrize("stream", [chunks_of, generated])
@pytest.mark.parametrize(("chunk", "kind"), [(5, "int"), ({"a": 1}, "dict"), ([1, 2], "list"), (None, "NoneType")])
async def test_only_text_and_bytes_are_chunks(got: CollectedResult, stream: Any, chunk: Any, kind: str):
    await got.take(stream("before", chunk, "after"))
    said = f"TypeError: the tool yielded a value of type {kind}; a stream must yield text or bytes"
    assert (content(got), got.broke_off) == (b"before", said)


async def test_a_long_error_of_a_broken_stream_is_shortened_in_the_note(got: CollectedResult):
    async def stream() -> AsyncIterator[str]:
        yield "x"
        raise Ended("e" * 5000)

    await got.take(stream())
    assert f"Ended: {'e' * 993}… [4,007 more characters]." in got.notes[0]


async def test_an_async_generator_is_closed_when_its_reader_ends():
    closed: list[bool] = []

    async def stream() -> AsyncIterator[Any]:
        try:
            yield "a"
            yield 5
        finally:
            closed.append(True)

    shelf = MemoryStore().open_shelf(handles.new())
    await CollectedResult(lambda: Spool(shelf, handles.new())).take(stream())
    assert closed == [True]


async def test_what_a_generator_yielded_is_available_while_it_blocks(got: CollectedResult):
    yielded, released, ended = Event(), Event(), Event()

    def stream() -> Iterator[str]:
        try:
            yield "first"
            yielded.set()
            released.wait(timeout=30)
            yield "too late"
        finally:
            ended.set()

    async def apart(work: Any) -> None:
        await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                await anyio.to_thread.run_sync(yielded.wait)
                scope.cancel()

            group.start_soon(leave)
            await got.take(stream(), apart)
    assert (got.produced, content(got), got.complete) == (5, b"first", False)
    got.fail(TimeoutError("late"))
    released.set()
    assert await anyio.to_thread.run_sync(lambda: ended.wait(timeout=30))
    assert (content(got), got.broke_off) == (b"first", "TimeoutError: late")


TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///b", "text": "bb"}}
BLOB = {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}}
LINK = {"type": "resource_link", "uri": "file:///d", "name": "d"}
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}


async def test_blocks_are_collected_with_the_boundaries_of_their_texts(got: CollectedResult):
    blocks = [TEXT, IMAGE, RESOURCE, BLOB, LINK, AUDIO, {"type": "text", "text": "ccc"}]
    await got.take(blocks)
    assert got.content is not None
    assert all(ours is theirs for ours, theirs in zip(got.content, blocks, strict=True))
    assert (content(got), got.boundaries, got.plain) == (b"abbccc", (1, 3), None)


async def test_a_long_text_block_is_taken_off_the_event_loop(got: CollectedResult):
    await got.take([{"type": "text", "text": "x" * 300_000}, TEXT])
    assert (got.spool.size.bytes, got.boundaries) == (300_001, (300_000,))


async def test_objects_of_the_mcp_sdk_are_blocks_too(got: CollectedResult):
    types = pytest.importorskip("mcp_types")
    blocks = [
        types.TextContent(type="text", text="hello"),
        types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
        types.EmbeddedResource(type="resource", resource=types.TextResourceContents(uri="file:///x", text="inside")),
    ]
    await got.take(blocks)
    assert (got.content, content(got), got.boundaries) == (blocks, b"helloinside", (5,))


async def test_an_output_knows_its_blocks_and_whether_they_report_an_error(got: CollectedResult):
    await got.take(Output([TEXT], is_error=True))
    assert (got.content, got.is_error, got.error) == ([TEXT], True, None)


def test_an_output_made_from_a_string_has_one_text_block():
    assert Output("HTTP 503", is_error=True) == Output([{"type": "text", "text": "HTTP 503"}], is_error=True)


async def test_an_output_without_blocks_has_none(got: CollectedResult):
    await got.take(Output([]))
    assert (got.content, got.plain, content(got)) == ([], None, b"")


@pytest.mark.parametrize(
    "records",
    [
        [{"type": "text", "body": "no text"}],
        [{"type": "text", "text": 5}],
        [{"type": "image", "width": 5}],
        [{"type": "resource", "resource": {"uri": "x"}}],
        [{"type": "resource"}],
        [{"type": "resource_link"}],
        [{"type": "video", "data": "AAAA"}],
        [TEXT, {"a": 1}],
        [TEXT, "text"],
        [],
        {"type": "text", "text": "a"},
    ],
)
def test_records_that_only_resemble_blocks_are_data(records: Any):
    assert not is_blocks(records)


@pytest.mark.parametrize(("block", "text"), [(TEXT, "a"), (RESOURCE, "bb"), (IMAGE, None), (BLOB, None), (LINK, None), (5, None)])
def test_the_text_of_a_block(block: Any, text: str | None):
    assert block_text(block) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (ExceptionGroup("both", [ValueError("a"), ExceptionGroup("in", [KeyError("b")])]), "ValueError: a; KeyError: 'b'"),
        (SystemExit(2), "SystemExit: 2"),
    ],
)
def test_an_error_in_words(error: BaseException, text: str):
    assert describe(error) == text


async def test_discarding_leaves_nothing_in_the_store(shelf: Shelf, got: CollectedResult):
    got.discard()
    await got.take(b"x" * (2 * MEMORY))
    got.discard()
    with pytest.raises(Exception, match="No stored output"):
        shelf.open(got.spool.id)


async def test_nothing_is_produced_before_there_is_a_spool(got: CollectedResult):
    assert (got.produced, got.failure) == (0, "")
    await got.take("text")
    assert got.produced == 0
    assert got.spool.total == 4
    assert got.produced == 4
