"""Measuring: bytes are UTF-8, characters are code points, lines end as people see them end."""

import pytest

from overspill.store.meter import Meter, size_of
from overspill.types import Size


@pytest.mark.parametrize(
    ("content", "bytes_", "chars", "lines"),
    [
        ("", 0, 0, 0),
        ("a", 1, 1, 1),
        ("a\n", 2, 2, 1),
        ("a\nb", 3, 3, 2),
        ("a\r\nb\r\n", 6, 6, 2),
        ("a\rb", 3, 3, 2),
        ("\n\n", 2, 2, 2),
        ("é€😀", 9, 3, 1),
        ("a\ud800", 4, 2, 1),
        ("a\u2028b", 5, 3, 1),
    ],
)
def test_the_size_of_a_string(content: str, bytes_: int, chars: int, lines: int):
    size = size_of(content)
    assert (size.bytes, size.chars, size.lines) == (bytes_, chars, lines)


def test_pieces_measure_like_the_whole_wherever_they_are_cut():
    data = "a\r\nü€\r😀\n\r\nend".encode()
    whole = Meter()
    whole.add(data)
    for cut in range(len(data) + 1):
        meter = Meter()
        meter.add(data[:cut])
        meter.add(data[cut:])
        assert meter.size() == whole.size(), cut


def test_an_unfinished_character_at_the_end_counts_byte_by_byte():
    meter = Meter()
    meter.add(b"ab\xe2\x82")
    assert meter.size().chars == 4


@pytest.mark.parametrize(("size", "average"), [(Size(10, 10, 3, 1), 4), (Size(9, 9, 3, 1), 3), (Size(0, 0, 0, 0), 0)])
def test_the_average_line_is_rounded_up(size: Size, average: int):
    assert size.average_line_bytes == average


def test_tokens_of_a_long_text_are_sampled_while_it_flows():
    line = "2026-11-15 INFO worker 17 finished job 4711 in 35 ms\n"
    small, large = size_of(line * 1000), size_of(line * 40_000)
    assert not small.estimated
    assert large.estimated
    assert abs(large.tokens - small.tokens * 40) < small.tokens * 40 * 0.03


def test_small_pieces_of_a_long_stream_are_sampled_too():
    line = b"2026-11-15 INFO worker 17 finished job 4711 in 35 ms\n"
    meter = Meter()
    for _ in range(12_000):
        meter.add(line)
    expected = size_of(line.decode() * 1000).tokens * 12
    assert abs(meter.size().tokens - expected) < expected * 0.1
