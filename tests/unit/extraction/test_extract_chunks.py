from typing import get_args

import pytest

from overspill import handles
from overspill.extraction import chunks
from overspill.extraction.chunks import Span
from overspill.extraction.document import ModelMode, Policy, Strategy
from overspill.extraction.strategies import choose_mode, find_strategy
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Reader
from overspill.types import Size


def reader_of(content: bytes) -> Reader:
    shelf = MemoryStore().open_shelf(handles.new())
    writer = shelf.create(file := handles.new())
    writer.append(content)
    writer.commit()
    return shelf.open(file)


def test_what_fits_is_one_chunk():
    assert chunks.plan(reader_of(b"a small text"), 4, 100, 10) == (Span(0, 12),)


def test_chunks_are_balanced_and_overlap():
    content = b"x" * 10_000
    spans = chunks.plan(reader_of(content), 10_000, 3_000, 10)
    assert spans == (Span(0, 2703), Span(2432, 5136), Span(4864, 7568), Span(7297, 10_000))


def test_without_overlap_chunks_meet():
    spans = chunks.plan(reader_of(b"x" * 100), 100, 26, 0)
    assert spans == (Span(0, 25), Span(25, 50), Span(50, 75), Span(75, 100))


def test_cuts_prefer_line_ends():
    content = b"".join(b"line %04d\r\n" % number for number in range(1000))
    spans = chunks.plan(reader_of(content), 4000, 1500, 10)
    assert len(spans) == 3
    assert all(content[start : start + 4] == b"line" and content[end - 2 : end] == b"\r\n" for start, end in spans)


def test_a_character_is_never_split():
    content = "日本語".encode() * 1000
    for start, end in chunks.plan(reader_of(content), 3000, 400, 10):
        content[start:end].decode()


def test_a_hundred_megabytes_in_one_line_are_cut_without_reading_them():
    class Line:
        """One line of x; remembers how much of it was read."""

        size = 100_000_000
        seen = 0

        def read(self, start: int, end: int) -> bytes:
            self.seen += min(end, self.size) - start
            return b"x" * (min(end, self.size) - start)

    line = Line()
    spans = chunks.plan(line, 25_000_000, 100_000, 10)  # pyright: ignore[reportArgumentType]
    assert len(spans) == 278
    assert spans[0].start == 0
    assert spans[-1].end == 100_000_000
    assert line.seen < 15_000_000


def test_a_dense_chunk_is_cut_again():
    content = b"w" * 1000 + b"0" * 1000
    reader = reader_of(content)

    def tokens(span: Span) -> int:
        return content[span.start : span.end].count(b"0") + (span.end - span.start) // 10

    spans = chunks.refine(reader, chunks.plan(reader, 1200, 700, 0), 700, 0, tokens)
    assert spans == (Span(0, 1000), Span(1000, 1500), Span(1500, 2000))


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
    assert find_strategy(mode).name in get_args(Strategy)
