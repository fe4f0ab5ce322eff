from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from readers import BytesReader

from overspill.reading.positions import View
from overspill.store.meter import Meter
from overspill.text.encoding import byte_offset, character_start, clean, decode, make_searchable


def view(data: bytes, block: int = 64 * 1024) -> View:
    return View(BytesReader(data), block)


def test_valid_text_is_decoded_as_usual() -> None:
    assert decode("naïve 日本 😀".encode()) == "naïve 日本 😀"


def test_each_invalid_byte_is_one_replacement_character() -> None:
    assert decode(b"a\xff\xe2\x82b\xf0\x80\x80\x80") == "a\ufffd\ufffd\ufffdb\ufffd\ufffd\ufffd\ufffd"


def test_an_encoded_lone_surrogate_is_one_character() -> None:
    assert decode("a\ud800\udc80b".encode("utf-8", "surrogatepass")) == "a\ud800\udc80b"


def test_a_surrogate_beside_an_invalid_byte_stays_itself() -> None:
    assert decode(b"\xff\xed\xb2\x80\xff\xed") == "\ufffd\udc80\ufffd\ufffd"


def test_cleaning_replaces_lone_surrogates_and_nothing_else() -> None:
    assert clean("a\ud800\x00\x1b[0m") == "a\ufffd\x00\x1b[0m"


def test_cleaning_returns_the_same_text_when_there_is_nothing_to_do() -> None:
    text = "plain \x07 text"
    assert clean(text) is text


def test_searchable_bytes_are_valid_and_as_long_as_before() -> None:
    assert make_searchable(b"a\xff\xc3\xa9\xe2\x82\xed\xa0\x80") == b"a\x1a\xc3\xa9\x1a\x1a\xed\xa0\x80"


@pytest.mark.parametrize(
    ("data", "at", "expected"),
    [
        ("é".encode(), 1, 0),
        ("日".encode(), 2, 0),
        ("😀".encode(), 3, 0),
        ("日".encode(), 3, 3),
        (b"\xed\xa0\x80", 1, 0),
        (b"\xf0\x80\x80\x80", 2, 2),
        (b"\xe2\x82", 1, 1),
        (b"\x80\x80\x80\x80\x80", 4, 4),
        (b"ab", 1, 1),
        (b"", 0, 0),
    ],
)
def test_a_boundary_is_never_inside_a_character(data: bytes, at: int, expected: int) -> None:
    assert character_start(data, at) == expected


def test_the_bytes_of_the_first_characters_are_counted_in_any_content() -> None:
    data = b"a\xff\xed\xa0\x80\xc3\xa9\xed\xb2\x80z"
    assert [byte_offset(data, count) for count in range(8)] == [0, 1, 2, 5, 7, 10, 11, 11]
    assert byte_offset(b"abc", 2) == 2


def test_an_empty_output_has_no_lines() -> None:
    nothing = view(b"")
    assert (nothing.bytes, nothing.chars, nothing.lines) == (0, 0, 0)
    assert nothing.line_span(1, 1) == (0, 0)
    assert nothing.char_span(0, 5) == (0, 0)
    assert (nothing.line_at(0), nothing.char_at(0)) == (0, 0)


@pytest.mark.parametrize(
    ("data", "lines"), [(b"a", 1), (b"a\n", 1), (b"a\r\nb\rc\n\n", 4), (b"\r\n", 1), (b"\n\r", 2), (b"\r\r\n", 2)]
)
def test_lines_end_with_any_line_end_and_a_trailing_one_adds_none(data: bytes, lines: int) -> None:
    assert view(data).lines == lines


def test_a_line_span_includes_its_line_end() -> None:
    data = b"one\r\ntwo\rthree\nfour"
    assert [view(data).line_span(line, line) for line in range(1, 6)] == [(0, 5), (5, 9), (9, 15), (15, 19), (19, 19)]
    assert view(data).line_span(2, 3) == (5, 15)
    assert view(data).line_span(2, 99) == (5, 19)


def test_the_line_feed_of_a_crlf_belongs_to_the_line_it_ends() -> None:
    assert [view(b"a\r\nb").line_at(byte) for byte in range(5)] == [1, 1, 1, 2, 2]


def test_a_crlf_across_blocks_is_one_line_end() -> None:
    assert view(b"abc\r\nd", block=4).lines == 2
    assert view(b"abc\r\nd", block=4).line_span(2, 2) == (5, 6)


def test_a_line_is_found_with_its_first_byte_wherever_the_blocks_end() -> None:
    data = b"a\r\nbb\r\rccccccccc\n\nd"
    fresh = [view(data, block=4).find_line(byte) for byte in range(len(data) + 1)]
    far, shared = view(data), view(data, block=4)
    expected = [(far.line_at(byte), far.line_start(far.line_at(byte))) for byte in range(len(data) + 1)]
    assert fresh == expected
    assert [shared.find_line(byte) for byte in reversed(range(len(data) + 1))] == expected[::-1]
    assert expected[:4] == [(1, 0), (1, 0), (1, 0), (2, 3)]


def test_a_byte_inside_a_character_belongs_to_it() -> None:
    data = "aé日😀".encode()
    assert [view(data).char_at(byte) for byte in range(len(data) + 1)] == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4]


def test_characters_are_found_behind_many_blocks() -> None:
    data = "é😀x".encode() * 1000
    far = view(data, block=8)
    assert far.chars == 3000
    assert far.char_span(2001, 2003) == (2001 // 3 * 7 + 0, 2001 // 3 * 7 + 6)


def test_a_view_reads_no_further_than_it_is_asked() -> None:
    class Counting(BytesReader):
        furthest = 0

        def read(self, start: int, end: int) -> bytes:
            self.furthest = max(self.furthest, end)
            return super().read(start, end)

    reader = Counting(b"line\n" * 10_000)
    assert View(reader, 100).line_at(420) == 85
    assert reader.furthest < 700


def test_a_view_keeps_to_the_size_it_was_made_with() -> None:
    reader = BytesReader(b"one\ntwo")
    early = View(reader)
    reader.data = b"one\ntwo and more\nthree"
    assert (early.lines, early.chars) == (2, 7)
    assert early.line_span(2, 2) == (4, 7)


def test_several_threads_may_ask_at_once() -> None:
    data = "".join(f"línea {number}\r\n" for number in range(60_000)).encode()
    shared, asked = View(BytesReader(data), block=1000), range(0, len(data), 9973)
    with ThreadPoolExecutor(8) as pool:
        lines = [pool.submit(shared.line_at, byte) for byte in reversed(asked)]
        chars = [pool.submit(shared.char_at, byte) for byte in asked]
        spans = [pool.submit(shared.line_start, line) for line in range(1, 60_000, 997)]
    alone = View(BytesReader(data))
    assert [answer.result() for answer in lines] == [alone.line_at(byte) for byte in reversed(asked)]
    assert [answer.result() for answer in chars] == [alone.char_at(byte) for byte in asked]
    assert [answer.result() for answer in spans] == [alone.line_start(line) for line in range(1, 60_000, 997)]
    assert (shared.lines, shared.chars) == (alone.lines, alone.chars)


def test_marks_of_the_meter_spare_the_first_pass() -> None:
    data = "".join(f"línea {number}\r\n" for number in range(60_000)).encode()
    meter = Meter()
    for start in range(0, len(data), 70_001):
        meter.add(data[start : start + 70_001])
    marked, alone = View(BytesReader(data), checkpoints=meter.checkpoints), View(BytesReader(data))
    assert len(meter.checkpoints) > 5
    for byte in range(0, len(data), 9973):
        assert (marked.line_at(byte), marked.char_at(byte)) == (alone.line_at(byte), alone.char_at(byte))
    assert (marked.lines, marked.chars) == (alone.lines, alone.chars)


class CountingReader(BytesReader):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.bytes_read = 0

    def read(self, start: int, end: int) -> bytes:
        self.bytes_read += max(0, min(end, self.size) - start)
        return super().read(start, end)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_looking_up_neighbouring_lines_reads_their_block_once(end: bytes) -> None:
    """As grep does, for a hit and the lines around it. The meter's marks are a megabyte apart for an output that is one text."""
    data = b"".join(b"%07d" % number + end for number in range(200_000))
    meter = Meter()
    for start in range(0, len(data), 1 << 20):
        meter.add(data[start : start + (1 << 20)])
    reader = CountingReader(data)
    view, alone = View(reader, checkpoints=meter.checkpoints), View(BytesReader(data))
    hit = data.index(b"0150000")
    assert view.line_at(hit) == 150_001
    once = reader.bytes_read
    assert once < 3 << 20
    for line in (*range(149_800, 150_200), 150_001, *range(150_200, 149_800, -7)):
        assert view.line_start(line) == alone.line_start(line)
        assert view.line_at(view.line_start(line)) == line
    assert reader.bytes_read - once < 1 << 20


def test_lines_far_apart_are_found_in_any_order() -> None:
    data = b"".join(b"x" * (number % 97) + (b"\n", b"\r\n", b"\r")[number % 3] for number in range(30_000))
    view = View(BytesReader(data))
    starts = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", data))]
    for line in (number * 7919 % (len(starts) - 1) + 1 for number in range(3_000)):
        assert view.line_start(line) == starts[line - 1]
        assert view.line_at(starts[line - 1]) == line
