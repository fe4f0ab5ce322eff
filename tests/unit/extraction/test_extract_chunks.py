from itertools import pairwise
from typing import get_args

import pytest

from overspill import handles
from overspill.extraction import chunks
from overspill.extraction.chunks import Span
from overspill.extraction.document import ModelMode, Policy, Strategy, name_strategy
from overspill.extraction.strategies import choose_mode
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Reader
from overspill.types import Size


def reader_of(content: bytes) -> Reader:
    shelf = MemoryStore().open_shelf(handles.new())
    writer = shelf.create(file := handles.new())
    writer.append(content)
    writer.commit()
    return shelf.open(file)


def count_bytes(span: Span) -> int:
    return span.end - span.start


def test_what_fits_is_one_chunk():
    assert chunks.plan(reader_of(b"a small text"), 100, 10, count_bytes) == (Span(0, 12),)
    assert chunks.plan(reader_of(b""), 100, 10, count_bytes) == (Span(0, 0),)


def test_chunks_are_balanced_and_overlap():
    content = b"x" * 10_000
    spans = chunks.plan(reader_of(content), 3_000, 10, count_bytes)
    assert spans == (Span(0, 2703), Span(2432, 5135), Span(4865, 7568), Span(7297, 10_000))


def test_without_overlap_chunks_meet():
    spans = chunks.plan(reader_of(b"x" * 100), 26, 0, count_bytes)
    assert spans == (Span(0, 25), Span(25, 50), Span(50, 75), Span(75, 100))


def test_cuts_prefer_line_ends():
    content = b"".join(b"line %04d\r\n" % number for number in range(1000))
    spans = chunks.plan(reader_of(content), 4_400, 10, count_bytes)
    assert len(spans) == 3
    assert all(content[start : start + 4] == b"line" and content[end - 2 : end] == b"\r\n" for start, end in spans)


def test_a_character_is_never_split():
    content = "日本語".encode() * 1000
    for start, end in chunks.plan(reader_of(content), 400, 10, count_bytes):
        content[start:end].decode()


def test_a_long_document_is_planned_from_samples():
    content, counted = b"some words\n" * 2_000_000, list[int]()

    def count(span: Span) -> int:
        counted.append(span.end - span.start)
        return (span.end - span.start) // 4

    spans = chunks.plan(reader_of(content), 200_000, 10, count)
    assert len(spans) == 31
    assert sum(size for size in counted if size < 100_000) < 10_000_000
    assert sum(counted[-len(spans) :]) < 1.11 * len(content)


def test_chunks_have_equally_many_tokens_where_some_parts_hold_more_than_others():
    content = b"w" * 60_000 + b"0" * 20_000 + b"w" * 60_000

    def tokens(span: Span) -> int:
        part = content[span.start : span.end]
        return part.count(b"0") + part.count(b"w") // 10

    spans = chunks.plan(reader_of(content), 2_100, 10, tokens)
    counts = [tokens(span) for span in spans]
    assert len(spans) == chunks.count(tokens(Span(0, len(content))), 2_100, 10) == 17
    assert max(counts) <= 2_100
    assert min(counts) > 0.9 * max(counts)
    assert (spans[0].start, spans[-1].end) == (0, len(content))
    assert all(after.start < before.end < after.end for before, after in pairwise(spans))


@pytest.mark.parametrize(
    ("tokens", "bytes", "lines", "expected"),
    [
        (1000, 4000, 100, "full-chunked"),
        (1001, 4000, 100, "read-grep"),
        (1001, 100_000, 100, "read-grep"),
        (1001, 100_001, 100, "full-chunked"),
        (1001, 4000, 1, "full-chunked"),
    ],
)
def test_few_chunks_or_long_lines_are_read_whole(tokens: int, bytes: int, lines: int, expected: str):
    assert choose_mode(Size(bytes, bytes, lines, tokens), Policy(), 1000) == expected


def test_the_number_of_chunks_that_are_read_whole_can_be_set():
    size = Size(4000, 4000, 100, 1900)
    assert choose_mode(size, Policy(max_chunks=2), 1000) == "full-chunked"
    assert choose_mode(size, Policy(max_chunks=2, overlap_percent=20), 1000) == "read-grep"


@pytest.mark.parametrize("mode", get_args(ModelMode))
def test_every_mode_that_asks_a_model_has_a_strategy(mode: ModelMode):
    assert name_strategy(mode) in get_args(Strategy)
