"""Whatever the text and the limit: never over the limit, never a false count, never invalid."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overspill.text.lines import count_lines
from overspill.truncate import STRATEGIES, BothEnds, Cut, Shape, truncate, truncate_ends

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
MARKER = re.compile(
    r"\n\.\.\. \[[\d,]+ lines / [\d,]+ chars omitted[^]]*\] \.\.\.\n"
    r"|\.\.\. \[Beginning omitted: [^]]*\] \.\.\.(?:\n\n)?"
    r"|\.\.\. \[Remainder omitted: [^]]*\] \.\.\."
    r"|\[[\d,]+ chars omitted\]|…"
)

characters = st.one_of(
    st.sampled_from("ab \r\n\u2028\u0301\u200d"), st.characters(exclude_categories=(), exclude_characters="…[]")
)
words = st.lists(
    st.one_of(st.text(characters, max_size=8), st.sampled_from(["\r\n", "\n", "\r", "word " * 9, "x" * 90])), max_size=60
)
texts = words.map("".join)
limits = st.one_of(st.integers(1, 60), st.integers(1, 2000))
by_ends = st.sampled_from(["head", "tail", "head_tail", "line"])
shapes = st.builds(
    Shape,
    head_ratio=st.floats(0, 1),
    head_lines=st.none() | st.integers(1, 9),
    tail_lines=st.none() | st.integers(1, 9),
    line_from=st.sampled_from(["start", "end"]),
    depth=st.none() | st.integers(1, 4),
    first_elements=st.none() | st.integers(0, 3),
    last_elements=st.none() | st.integers(0, 3),
    max_keys=st.none() | st.integers(0, 4),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters, max_size=200),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(characters, max_size=9), inner, max_size=9),
    max_leaves=30,
)


unhurried = settings(deadline=None)


def kept_ends(text: str, cut: Cut) -> tuple[str, str]:
    """The source's characters have no brackets and no ellipsis, so the one marker is found without doubt."""
    (marker,) = MARKER.finditer(cut.text)
    head, tail = cut.text[: marker.start()], cut.text[marker.end() :]
    if "Remainder" in marker[0] and head:
        # The blank line belongs to the marker: one line end after a kept one, else two.
        blank = len(head) + cut.omitted_chars - len(text)
        assert head.endswith("\n\n")
        assert blank == 1 or (blank == 2 and not head[:-2].endswith("\n"))
        head = head[:-blank]
    return head, tail


@unhurried
@given(texts, limits, st.sampled_from(sorted(set(STRATEGIES) - {"none"})), shapes)
def test_no_strategy_goes_over_the_limit_or_counts_below_zero(text: str, limit: int, strategy: str, shape: Shape) -> None:
    cut = truncate(text, limit, strategy, shape)
    assert len(cut.text) <= limit
    assert cut.omitted_lines >= 0
    assert (cut.omitted_chars > 0) == (len(text) > limit)


@unhurried
@given(texts, limits, by_ends, shapes)
def test_the_counts_are_true(text: str, limit: int, strategy: str, shape: Shape) -> None:
    cut = truncate(text, limit, strategy, shape)
    if len(text) <= limit:
        assert cut == Cut(text, strategy)
        return
    head, tail = kept_ends(text, cut)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + cut.omitted_chars + len(tail) == len(text)
    stop, start = len(head), len(text) - len(tail)
    assert cut.omitted_lines == sum(stop <= line.start() and line.end() <= start for line in LINE.finditer(text))
    assert text[stop - 1 : stop + 1] != "\r\n" or stop == 0
    assert text[start - 1 : start + 1] != "\r\n" or start == len(text)


@unhurried
@given(texts, limits, by_ends, shapes)
def test_the_marker_repeats_the_counts(text: str, limit: int, strategy: str, shape: Shape) -> None:
    cut = truncate(text, limit, strategy, shape)
    if "lines / " in cut.text:
        assert f"{cut.omitted_lines:,} lines / {cut.omitted_chars:,} chars" in cut.text


@unhurried
@given(texts, limits, by_ends, shapes)
def test_a_marker_names_a_cut_line_exactly_when_there_is_one(text: str, limit: int, strategy: str, shape: Shape) -> None:
    cut = truncate(text, limit, strategy, shape)
    if "lines / " not in cut.text:
        return
    head, tail = kept_ends(text, cut)
    after, before = text[len(head) :][:1], text[: len(text) - len(tail)][-1:]
    above = head != "" and head[-1] not in "\r\n" and after not in "\r\n"
    below = tail != "" and before not in "\r\n" and tail[0] not in "\r\n"
    said = re.search(r"; (the lines? [a-z ]+) (?:is|are) cut\]", cut.text)
    words = {(True, True): "the lines above and below", (True, False): "the line above", (False, True): "the line below"}
    assert (said[1] if said else None) == words.get((above, below))


@unhurried
@given(texts, limits, shapes)
def test_every_line_kept_by_line_is_a_line_of_the_source(text: str, limit: int, shape: Shape) -> None:
    cut = truncate(text, limit, "line", shape)
    lines = LINE.findall(text)
    if len(text) > limit:
        head, tail = (LINE.findall(end) for end in kept_ends(text, cut))
        assert head == lines[: len(head)]
        assert tail == lines[len(lines) - len(tail) :]


@unhurried
@given(texts, limits, by_ends, shapes, st.integers(0, 40))
def test_ends_that_were_loaded_far_enough_give_what_the_text_gives(
    text: str, limit: int, strategy: str, shape: Shape, more: int
) -> None:
    size = limit + 2 + more
    ends = BothEnds(text[:size], text[max(0, len(text) - size) :], len(text), count_lines(text))
    loaded = truncate_ends(ends, limit, strategy, shape)
    assert loaded == truncate(text, limit, strategy, shape)


@unhurried
@given(texts, limits, st.sampled_from(sorted(STRATEGIES)), shapes, st.integers(0, 50), st.integers(0, 50))
def test_ends_loaded_too_short_still_count_truly(
    text: str, limit: int, strategy: str, shape: Shape, head: int, tail: int
) -> None:
    loaded = text[len(text) - min(tail, len(text)) :]
    cut = truncate_ends(BothEnds(text[:head], loaded, len(text), count_lines(text)), limit, strategy, shape)
    if cut.strategy in ("element", "none") or cut.omitted_chars == 0:
        return
    assert len(cut.text) <= limit
    kept_head, kept_tail = kept_ends(text, cut)
    assert text.startswith(kept_head)
    assert text.endswith(kept_tail)
    assert len(kept_head) + cut.omitted_chars + len(kept_tail) == len(text)
    stop, start = len(kept_head), len(text) - len(kept_tail)
    assert cut.omitted_lines == sum(stop <= line.start() and line.end() <= start for line in LINE.finditer(text))


@unhurried
@given(values, st.sampled_from([None, 1, 4, "\t"]), st.booleans(), limits, shapes)
def test_json_stays_json(value: object, indent: int | str | None, ascii_only: bool, limit: int, shape: Shape) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    cut = truncate(text, limit, "element", shape)
    assert len(cut.text) <= limit
    if cut.strategy == "element":
        assert isinstance(json.loads(cut.text), type(value) if isinstance(value, list | dict) and cut.text != '"…"' else object)
    else:
        assert limit < 3


@unhurried
@given(st.lists(values.map(lambda value: [value]), min_size=2, max_size=5), limits, shapes)
def test_json_lines_stay_json_lines(documents: list[object], limit: int, shape: Shape) -> None:
    text = "\n".join(json.dumps(document) for document in documents)
    cut = truncate(text, limit, "element", shape)
    assert len(cut.text) <= limit
    if cut.strategy == "element":
        for line in cut.text.split("\n"):
            json.loads(line)
    else:
        assert limit < 3


names = st.sampled_from(["a", "item", "ns.name", "é"])
escaped = st.sampled_from(
    ["text", "&amp;", "&#65;", "]] >", "/>", "<![CDATA[<x>&]]>", "<!-- a > b -->", "<?p i?>", "\n  ", "word " * 60]
)
attributes = st.sampled_from(["", ' b="1>2"', " b='/>'", ' long="' + "x" * 200 + '"'])


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    name, content = draw(names), draw(st.lists(escaped, max_size=3))
    if depth:
        content += draw(st.lists(elements(depth - 1), max_size=4))
    content = draw(st.permutations(content))
    attribute = draw(attributes)
    return f"<{name}{attribute}>{''.join(content)}</{name} >" if content else f"<{name}{attribute}/>"


@unhurried
@given(st.sampled_from(["", "<?xml version='1.0'?>\n", "<!DOCTYPE a>"]), elements(), limits, shapes)
def test_xml_stays_well_formed(prolog: str, root: str, limit: int, shape: Shape) -> None:
    ElementTree.fromstring(prolog + root)  # noqa: S314
    cut = truncate(prolog + root, limit, "element", shape)
    assert len(cut.text) <= limit
    if cut.strategy == "element":
        ElementTree.fromstring(cut.text)  # noqa: S314


@pytest.mark.parametrize(
    "text", ["word " * 400, "a\r\nb\r\n" * 200, '["' + "é" * 500 + '", 1]', "<a><b>" + "x" * 500 + "</b></a>"]
)
@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"none"}))
def test_every_small_limit_holds_and_every_cut_is_marked(text: str, strategy: str) -> None:
    for limit in range(1, 120):
        cut = truncate(text, limit, strategy)
        assert 1 <= len(cut.text) <= limit
        assert "…" in cut.text or "omitted" in cut.text
