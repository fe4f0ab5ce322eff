"""`reply.value`: what passed is the tool's own object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from overspill import Output, Session
from overspill.types import Reply

BIG = "line of text\n" * 20_000


@dataclass
class Point:
    x: int
    y: int


class Picture:
    """Has no text form, like the image objects of some frameworks."""


async def call(result: Any) -> Reply:
    async with Session(preload=False) as session:
        return await session.call("tool", {}, lambda: result)


@pytest.mark.parametrize(
    "result", ["text", 7, {"a": [1, None]}, Point(1, 2), [Point(3, 4)], b"bytes", [{"type": "text", "text": "x"}]]
)
async def test_what_passes_is_the_tools_own_object(result: Any):
    reply = await call(result)
    assert reply.passed
    assert reply.value is result


async def test_the_value_of_nothing_is_nothing():
    reply = await call(None)
    assert (reply.passed, reply.value) == (True, None)


async def test_the_value_of_an_output_is_its_original_or_its_blocks():
    message = object()
    assert (await call(Output("text", original=message))).value is message
    assert (await call(Output("text"))).value == [{"type": "text", "text": "text"}]


async def test_a_stream_that_passes_has_its_text_as_value():
    async def stream() -> AsyncIterator[str]:
        yield "one "
        yield "two"

    reply = await call(stream())
    assert (reply.passed, reply.value) == (True, "one two")


async def test_an_object_without_a_text_form_comes_back_beside_the_error():
    picture = Picture()
    reply = await call(picture)
    assert (reply.passed, reply.is_error) == (False, True)
    assert reply.value is picture


@pytest.mark.parametrize("result", [BIG, [BIG], Output(BIG, original=BIG)])
async def test_what_is_stored_has_no_value(result: Any):
    reply = await call(result)
    assert reply.kept is not None
    assert (reply.passed, reply.value) == (False, None)


async def test_a_large_image_that_is_stored_has_no_value():
    reply = await call([{"type": "image", "data": "QUFB" * 3_000_000, "mimeType": "image/png"}])
    assert reply.kept is not None
    assert (reply.passed, reply.value) == (False, None)


async def test_a_tool_that_raises_has_no_value():
    def fail() -> str:
        raise ValueError("no")

    async with Session(preload=False) as session:
        reply = await session.call("tool", {}, fail)
    assert (reply.passed, reply.value, reply.is_error) == (False, None, True)
