"""Measuring: bytes are UTF-8, characters are code points, lines end as people see them end."""

import pytest

from overspill.store.meter import Meter, size_of
from overspill.text import tokens
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


def lines(count: int) -> str:
    return "".join(f"{number:06} größer 東京 {number * number % 9973} ok\n" for number in range(count))


@pytest.mark.parametrize("piece", [1, 7, 1000, 16_384, 10**9])
def test_an_estimate_is_near_the_exact_number_however_the_output_arrives(piece: int):
    data = lines(2_500).encode()
    exact = tokens.count(data.decode()).tokens
    meter = Meter(exact_bytes=12_288)
    for start in range(0, len(data), piece):
        meter.add(data[start : start + piece])
    assert meter.size().estimated
    assert abs(meter.size().tokens - exact) < exact * 0.03


@pytest.mark.parametrize("count", [20_000, 100_000])
def test_an_estimate_follows_an_output_that_changes(count: int):
    words = "word " * (count // 10)
    digits = "".join(f"{number % 10} " for number in range(count // 4))
    exact = tokens.count(words).tokens + tokens.count(digits).tokens
    meter = Meter(exact_bytes=12_288)
    meter.add(words.encode())
    meter.add(digits.encode())
    assert abs(meter.size().tokens - exact) < exact * 0.15


@pytest.mark.parametrize(("bytes_", "exact_bytes", "estimated"), [(32_768, 1, False), (32_769, 1, True), (60_000, 60_000, False)])
def test_tokens_that_may_decide_are_counted_exactly(bytes_: int, exact_bytes: int, estimated: bool):
    meter = Meter(exact_bytes=exact_bytes)
    meter.add(b"x" * bytes_)
    assert meter.size().estimated is estimated


def test_the_size_of_an_output_that_grows_is_measured_anew():
    meter = Meter()
    meter.add(b"one ")
    before = meter.size()
    meter.add(b"two three")
    assert before.tokens < meter.size().tokens
    assert meter.size() is meter.size()


@pytest.mark.parametrize(
    ("data", "is_plain"),
    [
        (b"", True),
        (b"plain", True),
        ("Größe № 17 😀".encode(), True),
        (b"with\0zero", False),
        ("Größe".encode("latin-1"), False),
        ("Größe".encode("utf-16"), False),
        ("Größe".encode()[:-2], False),
        ("\ud800".encode("utf-8", "surrogatepass"), False),
    ],
)
def test_plain_text_is_noted_wherever_it_is_cut(data: bytes, is_plain: bool):
    for step in (1, 2, 3, 100):
        meter = Meter()
        for start in range(0, len(data), step):
            meter.add(data[start : start + step])
        assert meter.is_plain == is_plain
