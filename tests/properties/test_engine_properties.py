"""Any bytes in: verbatim excerpts, never over budget, the same every time, never an exception."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right

from hypothesis import example, given
from hypothesis import strategies as st

from overspill.lexical.index import build
from overspill.lexical.select import Selection, select
from overspill.text import tokens
from overspill.text.encoding import decode

WORDS = st.sampled_from(
    ["error", "build", "Größe", "v1.2.3", "parseHTTPReply", "timeout", "total", "42", "naïve", "🙂", "a|b", "</td>"]
)
LINES = st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=30).map("\n".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | WORDS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=60,
)
CELLS = st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=3, max_size=20)


def _csv(rows: list[list[str]]) -> str:
    return "name,size,note\n" + "\n".join(",".join(row) for row in rows)


def _html(rows: list[list[str]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    head = "<h2>Sizes &amp; notes</h2><script>x<y</script><tr><th>name</th><th>size</th><th>note</th></tr>"
    return f"<html><table>{head}{body}</table></html>"


def _xml(rows: list[list[str]]) -> str:
    return '<?xml version="1.0"?><list>' + "".join(f"<row a='{row[0]}'>{row[1]}</row>" for row in rows) + "</list>"


def _log(text: str) -> str:
    return "\n".join(
        f"2026-01-01T00:00:{number % 60:02d} \x1b[31mERROR\x1b[0m {line}\n\tat x.y(Z.java:{number})"
        for number, line in enumerate(text.split("\n"))
    )


def _diff(text: str) -> str:
    return "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n" + "\n".join(f"+{line}" for line in text.split("\n"))


TEXTS = st.one_of(
    st.text(max_size=600),
    LINES,
    LINES.map(_log),
    LINES.map(_diff),
    LINES.map(lambda text: "\n".join(f"src/a.py:{number}:{line}" for number, line in enumerate(text.split("\n")))),
    LINES.map(lambda text: "def run():\n" + "\n".join(f"    x = '{line}'" for line in text.split("\n"))),
    VALUES.map(json.dumps),
    VALUES.map(lambda value: json.dumps(value, indent=2)),
    VALUES.map(lambda value: json.dumps({"result": json.dumps(value) * 9})),
    st.lists(VALUES, max_size=8).map(lambda values: "\n".join(json.dumps({"v": value}) for value in values)),
    CELLS.map(_csv),
    CELLS.map(_html),
    CELLS.map(_xml),
)
OUTPUTS = st.one_of(
    st.binary(max_size=400),
    TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.tuples(TEXTS, st.integers(0, 400)).map(lambda pair: pair[0].encode("utf-8", "surrogatepass")[: pair[1]]),
    st.tuples(TEXTS, st.binary(max_size=20)).map(lambda parts: parts[0].encode("utf-8", "replace") + parts[1]),
)
QUERIES = st.one_of(
    st.text(max_size=60),
    st.lists(WORDS, max_size=5).map(" ".join),
    st.sampled_from(
        [
            "why did the build fail",
            "which tests failed",
            "the largest size",
            "what comes after v1.2.3",
            'list all "error" lines',
            "first name",
            "top 3 total",
        ]
    ),
)


def _select(data: bytes, query: str, max_tokens: int) -> Selection:
    return select(build(data), query, max_tokens=max_tokens)


@given(OUTPUTS, QUERIES, st.integers(0, 400))
def test_every_excerpt_is_a_verbatim_slice_within_the_budget(data: bytes, query: str, max_tokens: int) -> None:
    selection = _select(data, query, max_tokens)
    assert math.ceil(len(selection.text) / 4) <= max_tokens
    assert 0.0 <= selection.confidence <= 1.0
    end = 0
    for found in selection.excerpts:
        assert end <= found.start_byte < found.end_byte <= len(data)
        assert found.text == decode(data[found.start_byte : found.end_byte])
        line_ends = [line_end.end() for line_end in re.finditer(rb"\r\n?|\n", data)]
        assert found.start_line == 1 + bisect_right(line_ends, found.start_byte)
        assert found.end_line == 1 + bisect_right(line_ends, found.end_byte - 1)
        end = found.end_byte


@given(OUTPUTS, QUERIES)
def test_the_same_question_gets_the_same_answer(data: bytes, query: str) -> None:
    index = build(data)
    first = select(index, query, max_tokens=120)
    assert select(index, query, max_tokens=120) == first
    assert _select(data, query, 120) == first


@given(OUTPUTS, QUERIES, st.integers(1, 200))
def test_a_budget_counted_otherwise_holds_too(data: bytes, query: str, max_tokens: int) -> None:
    def words(text: str) -> int:
        return len(text.split())

    assert words(select(build(data), query, max_tokens=max_tokens, count_tokens=words).text) <= max_tokens


@example(bytes(8) + b"\n" + bytes(60) + b"error" + bytes(3), "ERROR", 127)
@given(OUTPUTS, QUERIES, st.integers(1, 2000))
def test_a_selection_under_an_upper_bound_is_the_exact_one(data: bytes, query: str, max_tokens: int) -> None:
    def count(text: str) -> int:
        return tokens.count(text).tokens

    index = build(data)
    exact = select(index, query, max_tokens=max_tokens, count_tokens=count)
    assert select(index, query, max_tokens=max_tokens, count_tokens=count, bound_tokens=tokens.bound) == exact


@given(st.binary(max_size=300))
def test_decoding_keeps_what_is_valid_and_marks_each_stray_byte(data: bytes) -> None:
    text = decode(data)
    assert decode(text.encode("utf-8", "surrogatepass")) == text
    assert len(text) <= len(data)
