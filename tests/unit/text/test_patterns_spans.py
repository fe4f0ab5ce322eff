"""Spans of matches, found without an object for each."""

from __future__ import annotations

import mmap

from hypothesis import given
from hypothesis import strategies as st

from overspill.text.patterns import compile_pattern, find_spans


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([rb"a+", rb"(?i:ab|b)", rb"", rb"(a)|b"]))
def test_spans_are_those_of_the_matches(text: bytes, start: int, end: int, spelling: bytes) -> None:
    start, end = sorted((min(start, len(text)), min(end, len(text))))
    pattern = compile_pattern(spelling)
    assert list(find_spans(pattern, text, start, end)) == [found.span() for found in pattern.finditer(text, start, end)]


def test_spans_are_found_in_whatever_holds_bytes() -> None:
    pattern = compile_pattern(rb"b+")
    with mmap.mmap(-1, 6) as mapped:
        mapped[:] = b"abbabb"
        for text in (b"abbabb", bytearray(b"abbabb"), mapped):
            assert list(find_spans(pattern, text, 0, 6)) == [(1, 3), (4, 6)]
