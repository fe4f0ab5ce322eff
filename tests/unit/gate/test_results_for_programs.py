"""A call for a program: its result passes whole, is stored if it is large, and counts as shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from overspill import Output, Session, Settings

pytestmark = pytest.mark.anyio
LARGE = "a line of words\n" * 5000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store_dir=str(tmp_path))


async def stream() -> AsyncIterator[str]:
    for _ in range(10):
        yield LARGE


@pytest.mark.parametrize("value", [LARGE, [{"id": number} for number in range(5000)], Output([{"type": "text", "text": LARGE}])])
async def test_a_large_result_passes_whole_and_is_stored(settings: Settings, value: Any) -> None:
    async with Session(settings) as session:
        plain = await session.call("read", {}, lambda: value)
        reply = await session.call("read", {}, lambda: value, for_program=True)
        assert plain.kept is not None
        assert not plain.passed
        assert reply.kept is not None
        assert reply.passed
        with session.open(reply.kept.name) as stored:
            assert stored.bytes(0, stored.reader.size).decode() == reply.text


async def test_a_stream_passes_whole_and_is_stored(settings: Settings) -> None:
    async with Session(settings) as session:
        reply = await session.call("read", {}, stream, for_program=True)
    assert reply.kept is not None
    assert reply.text == LARGE * 10


async def test_what_a_program_got_does_not_count_as_kept_out_of_the_context(settings: Settings) -> None:
    async with Session(settings) as session:
        await session.call("read", {}, lambda: LARGE, for_program=True)
        counters = session.counters
    assert counters.kept == 1
    assert counters.truncated == 0
    assert counters.shown_chars == len(LARGE)


async def test_bytes_that_are_not_text_are_stored_and_described(settings: Settings) -> None:
    async with Session(settings) as session:
        reply = await session.call("read", {}, lambda: bytes(range(256)) * 100, for_program=True)
    assert reply.kept is not None
    assert reply.kept.media == "binary"
    assert not reply.passed


async def test_what_cannot_be_stored_passes_too(tmp_path: Path) -> None:
    async with Session(Settings(store_dir=str(tmp_path), max_run_bytes=10)) as session:
        reply = await session.call("read", {}, lambda: LARGE, for_program=True)
    assert reply.text == LARGE
