"""For any output, any limits, any budget: nothing is lost, nothing is over its limit, what is small passes as it is."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from overspill.budget import ContextBudget
from overspill.retrieval.output import StoredOutput
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
from overspill.types import Reply

texts = st.one_of(
    st.text(st.characters(), max_size=200),
    st.builds(lambda part, times: part * times, st.text(st.characters(), min_size=1, max_size=20), st.integers(1, 400)),
    st.lists(st.sampled_from(["a", "é", "€", "😀", "\r", "\n", "\r\n", "\ud800", "\0", " ", '{"a":1}']), max_size=300).map(
        "".join
    ),
)
presets = st.sampled_from(["overspill", "tool_output", "artifacts", "slow"])


def call(result: Any, limits: Settings, budget: ContextBudget | None = None) -> tuple[Reply, bytes | None]:
    async def run() -> tuple[Reply, bytes | None]:
        async with Session(limits, store=MemoryStore(), budget=budget) as session:
            reply = await session.call("search", {}, lambda: result, background=False)
            return reply, session.open(reply.kept.handle).bytes() if reply.kept else None

    return anyio.run(run)


def limited(preset: str, limit: int, **more: Any) -> Settings:
    return Settings(
        preset=preset,
        toolResponseMaxBytes=limit,
        asyncTokenThreshold=limit,
        truncation={"inline_limit": limit, "artifact_threshold": 4 * limit},
        **more,
    )


@given(texts, presets, st.integers(1, 2000))
def test_what_is_kept_is_every_byte_and_what_passes_is_every_character(text: str, preset: str, limit: int):
    reply, stored = call(text, limited(preset, limit))
    data = text.encode("utf-8", "surrogatepass")
    if reply.kept is None:
        assert reply.text == text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass").translate(
            dict.fromkeys(range(55296, 57344), "�")
        )
        assert len(data) <= limit
        assert len(text) <= limit
    else:
        assert stored == data
        assert reply.kept.sha256 == hashlib.sha256(data).hexdigest()
        assert (reply.kept.size.bytes, reply.kept.size.chars, reply.kept.missing) == (len(data), len(text), "")


@given(texts, st.integers(1, 3000), st.integers(0, 3000))
def test_an_answer_with_a_preview_is_never_over_the_size_cap(text: str, limit: int, chars: int):
    reply, _ = call(text, Settings(toolResponseMaxBytes=limit, previewChars=chars))
    if reply.kept is not None and "[preview " in reply.text:
        assert len(reply.text.encode()) <= limit


@given(texts, presets, st.integers(1, 2000), st.integers(0, 900))
def test_an_answer_that_is_said_to_fit_does_and_what_was_taken_is_what_was_given(text: str, preset: str, window: int, used: int):
    budget = ContextBudget(window=window, used=min(used, window))
    room = budget.room
    reply, stored = call(text, Settings(preset=preset), budget)
    assert budget.reserved == reply.tokens
    assert reply.fits == (reply.tokens <= room)
    assert stored in (None, text.encode("utf-8", "surrogatepass"))


@given(texts, st.integers(1, 500))
def test_an_output_over_the_maximum_keeps_its_beginning_and_says_so(text: str, maximum: int):
    data = text.encode("utf-8", "surrogatepass")
    reply, stored = call(text, Settings(toolResponseMaxBytes=1, truncation={"max_artifact_size": maximum}))
    if len(data) <= maximum:
        assert stored in (None, data)
    elif stored is None:
        assert "None of it was saved" in reply.text
    else:
        assert data.startswith(stored)
        assert maximum - 3 <= len(stored) <= maximum
        assert reply.kept is not None
        assert reply.kept.missing
        assert f"[The output has {len(data):,} bytes. Only the first {len(stored):,} were saved" in reply.text


@given(st.lists(texts, min_size=1, max_size=6))
def test_boundaries_part_the_stored_text_into_the_blocks_it_came_in(parts: list[str]):
    blocks = [{"type": "text", "text": part} for part in parts]
    reply, stored = call(blocks, Settings(toolResponseMaxBytes=1))
    if reply.kept is not None and stored is not None:
        edges = [0, *reply.kept.blocks, len(stored)]
        found = [stored[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(edges)]
        assert found == parts


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(texts.map(lambda text: text * 300), st.lists(st.integers(0, 1 << 20), max_size=20))
def test_however_a_stream_is_cut_it_is_the_same_output_and_reads_the_same(text: str, cuts: list[int]):
    """Also where a reader begins to count at a place noted while the output flowed."""
    data = text.encode("utf-8", "surrogatepass")

    async def run() -> None:
        async with Session(store=MemoryStore()) as session:
            kept = await session.keep((chunk for chunk in chunked(data, cuts)), "stream")
            noted = session.open(kept.handle)
            assert noted.bytes() == data
            fresh = StoredOutput(kept, noted.reader)
            assert (
                (noted.view.chars, noted.view.lines) == (fresh.view.chars, fresh.view.lines) == (kept.size.chars, kept.size.lines)
            )
            for share in (0.1, 0.5, 0.9):
                at = int(len(data) * share)
                assert noted.view.char_at(at) == fresh.view.char_at(at)
                assert noted.view.line_at(at) == fresh.view.line_at(at)

    anyio.run(run)
