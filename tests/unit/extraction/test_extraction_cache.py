"""What a session remembers of its extractions is bounded."""

from __future__ import annotations

from overspill.extraction.chunks import Span
from overspill.extraction.inquiry import MAX_RESULT_CHARS, Cache, CacheKey
from overspill.extraction.report import ModelReport
from overspill.types import Excerpt, Extraction

QUARTER = "x" * (MAX_RESULT_CHARS // 4)


def key(query: str) -> CacheKey:
    return CacheKey("ab" * 32, query, "full-chunked", "test/m", "1", 2000)


def result(text: str, *excerpts: Excerpt) -> Extraction:
    return Extraction(text, excerpts, 0.9, "full-chunked", "ab" * 32, 1, 1, 1)


def test_results_that_were_not_used_for_long_are_forgotten():
    cache = Cache()
    for query in "abcd":
        cache.results[key(query)] = result(QUARTER)
    assert cache.results.get(key("a")) is not None
    cache.results[key("e")] = result(QUARTER)
    assert [query for query in "abcde" if cache.results.get(key(query)) is None] == ["b"]


def test_excerpts_count_too():
    cache = Cache()
    cache.results[key("a")] = result("", *[Excerpt(QUARTER, 0, 1, 0, 1, 1, 1)] * 4)
    cache.results[key("b")] = result("x")
    assert (cache.results.get(key("a")), cache.results.get(key("b"))) == (None, result("x"))


def test_chunks_are_bounded_likewise():
    cache = Cache()
    for start in range(6):
        cache.chunks[key("a"), Span(start, start + 1)] = ModelReport("", (QUARTER,))
    assert [cache.chunks.get((key("a"), Span(start, start + 1))) is None for start in range(6)] == [True] * 2 + [False] * 4


def test_a_result_that_replaces_another_takes_its_place():
    cache = Cache()
    for _ in range(9):
        cache.results[key("a")] = result(QUARTER)
    cache.results[key("b")] = result(QUARTER)
    assert cache.results.get(key("a")) is not None
