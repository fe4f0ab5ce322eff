"""Whatever the content and the bound: following the continuations gives everything, exactly once, and no answer is too large."""

from __future__ import annotations

import re

from hypothesis import assume, example, given
from hypothesis import strategies as st
from readers import BytesReader

from overspill.reading import Bound, Passage, Range, around, bytes_range, chars, grep, lines, raw
from overspill.reading.positions import View
from overspill.reading.search import Search, compile_pattern
from overspill.text.encoding import byte_offset, character_start, decode, make_searchable

PIECES = [
    b"a",
    b"b ",
    b"needle",
    b"\n",
    b"\r",
    b"\r\n",
    "é".encode(),
    "日本".encode(),
    "😀".encode(),
    b"\xff",
    b"\xe2\x82",
    b"\x80",
]
PIECES += [b"\xed\xa0\x80", b"\xed\xb2\x80", b"\xed", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\x00", b"x" * 30]
contents = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join) | st.binary(max_size=60)
blocks = st.integers(4, 20)
bounds = st.builds(Bound, bytes=st.integers(1, 60), chars=st.none() | st.integers(1, 60))


def naive_characters(data: bytes) -> list[bytes]:
    """The bytes of each character, by trying the lengths one after the other."""
    characters: list[bytes] = []
    at = 0
    while at < len(data):
        for length in (1, 2, 3, 4):
            try:
                whole = len(data[at : at + length].decode("utf-8", "surrogatepass")) == 1
            except UnicodeDecodeError:
                continue
            if whole:
                break
        else:
            length = 1
        characters.append(data[at : at + length])
        at += length
    return characters


def naive_lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", data)


def shown(character: bytes) -> str:
    try:
        return character.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "\ufffd"


def follow(reader: BytesReader, view: View, answer: Passage, bound: Bound) -> list[Passage]:
    answers = [answer]
    while (rest := answers[-1].next) is not None:
        assert answers[-1].text
        answers.append(ask(reader, view, rest, bound))
    return answers


def ask(reader: BytesReader, view: View, what: Range, bound: Bound) -> Passage:
    if what.unit == "bytes":
        return bytes_range(reader, view, what.start, what.end, bound)
    if what.unit == "lines":
        return lines(reader, view, what.start, what.end, bound)
    return chars(reader, view, what.start, what.end - what.start, bound)


def check(reader: BytesReader, answers: list[Passage], bound: Bound, start: int, end: int) -> None:
    assert "".join(answer.text for answer in answers) == decode(reader.data[start:end])
    places = [(answer.start_byte, answer.end_byte) for answer in answers]
    assert [place[0] for place in places] == [start, *(place[1] for place in places[:-1])]
    assert places[-1][1] == end
    for answer in answers:
        assert answer.omitted == (end - answer.end_byte)
        if bound.bytes >= 4:
            assert len(answer.text.encode("utf-8", "surrogatepass")) <= bound.bytes
        assert bound.chars is None or len(answer.text) <= bound.chars


@given(contents)
def test_decoding_gives_one_character_for_each_naive_character(data: bytes) -> None:
    characters = naive_characters(data)
    assert decode(data) == "".join(map(shown, characters))
    assert [byte_offset(data, count) for count in range(len(characters) + 1)] == [
        len(b"".join(characters[:count])) for count in range(len(characters) + 1)
    ]
    assert len(make_searchable(data)) == len(data)


@given(contents)
def test_cutting_at_a_boundary_changes_no_character(data: bytes) -> None:
    for at in range(len(data) + 1):
        cut = character_start(data, at)
        assert decode(data[:cut]) + decode(data[cut:]) == decode(data)


@given(contents, blocks)
def test_a_view_agrees_with_counting_naively(data: bytes, block: int) -> None:
    view = View(BytesReader(data), block)
    each_line, each_character = naive_lines(data), naive_characters(data)
    assert (view.lines, view.chars, view.bytes) == (len(each_line), len(each_character), len(data))
    line_starts = [len(b"".join(each_line[:count])) for count in range(len(each_line) + 1)]
    char_starts = [len(b"".join(each_character[:count])) for count in range(len(each_character) + 1)]
    for number in range(1, len(each_line) + 1):
        assert view.line_span(number, number) == (line_starts[number - 1], line_starts[number])
    for number in range(len(each_character)):
        assert view.char_span(number, number + 1) == (char_starts[number], char_starts[number + 1])
    for byte in range(len(data)):
        assert View(BytesReader(data), block).line_at(byte) == sum(start <= byte for start in line_starts)
        assert View(BytesReader(data), block).char_at(byte) == sum(start <= byte for start in char_starts) - 1


@given(contents, bounds, blocks)
def test_raw_answers_put_together_are_the_output(data: bytes, bound: Bound, block: int) -> None:
    reader = BytesReader(data)
    view = View(reader, block)
    check(reader, follow(reader, view, raw(reader, view, bound), bound), bound, 0, len(data))


@given(contents, bounds, st.data())
def test_a_range_of_bytes_put_together_is_that_range(data: bytes, bound: Bound, draw: st.DataObject) -> None:
    assume(data)
    reader = BytesReader(data)
    view = View(reader)
    start = draw.draw(st.integers(0, len(data) - 1))
    end = draw.draw(st.integers(start + 1, len(data)))
    check(reader, follow(reader, view, bytes_range(reader, view, start, end, bound), bound), bound, start, end)


@given(contents, bounds, st.data())
def test_a_range_of_lines_put_together_is_those_lines(data: bytes, bound: Bound, draw: st.DataObject) -> None:
    assume(data)
    reader = BytesReader(data)
    view = View(reader, 7)
    first = draw.draw(st.integers(1, view.lines))
    last = draw.draw(st.integers(first, view.lines))
    each = naive_lines(data)
    start, end = len(b"".join(each[: first - 1])), len(b"".join(each[:last]))
    answers = follow(reader, view, lines(reader, view, first, last, bound), bound)
    check(reader, answers, bound, start, end)
    assert (answers[0].first_line, answers[-1].last_line) == (first, last)


@given(contents, bounds, st.data())
def test_a_slice_of_characters_put_together_is_that_slice(data: bytes, bound: Bound, draw: st.DataObject) -> None:
    assume(data)
    reader = BytesReader(data)
    view = View(reader, 9)
    start = draw.draw(st.integers(0, view.chars - 1))
    length = draw.draw(st.integers(1, 50))
    answers = follow(reader, view, chars(reader, view, start, length, bound), bound)
    assert "".join(answer.text for answer in answers) == decode(data)[start : start + length]
    assert [answer.end_char - answer.start_char for answer in answers] == [len(answer.text) for answer in answers]
    check(reader, answers, bound, answers[0].start_byte, answers[-1].end_byte)


@given(st.tuples(contents, st.just(b"needle"), contents).map(b"".join), bounds, st.integers(1, 80))
def test_the_surroundings_of_an_anchor_hold_it_and_name_what_is_missing(data: bytes, bound: Bound, window: int) -> None:
    reader = BytesReader(data)
    view = View(reader, 9)
    found = around(reader, view, "needle", bound, window=window)
    middle = decode(data).index("needle")
    first = max(0, middle - max(window - 6, 0) // 2)
    expected = decode(data)[first : middle - max(window - 6, 0) // 2 + max(window, 6)]
    before = ask_all(reader, view, found.previous, bound)
    after = ask_all(reader, view, found.next, bound)
    assert before + found.text + after == expected
    assert found.omitted == len(data[slice(*view.char_span(first, first + len(expected)))]) - (found.end_byte - found.start_byte)
    if bound.bytes >= 6 and (bound.chars or 6) >= 6:
        assert "needle" in found.text
        assert bound.holds(found.text)


def ask_all(reader: BytesReader, view: View, what: Range | None, bound: Bound) -> str:
    return "".join(answer.text for answer in follow(reader, view, ask(reader, view, what, bound), bound)) if what else ""


@given(contents, st.sampled_from(["needle", "a", "é", "日", "b ", "x", "😀", "ne+dle$", "^b", "^$", "a|b", ".", "$"]), st.data())
@example(b"\r\n", "^$", None)
def test_a_search_finds_the_lines_that_a_naive_search_finds(data: bytes, pattern: str, draw: st.DataObject | None) -> None:
    reader = BytesReader(data)
    view = View(reader, 11)
    bound = Bound(draw.draw(st.integers(100, 400)) if draw else 300)
    context = draw.draw(st.integers(0, 3)) if draw else 1
    each = [decode(line.rstrip(b"\r\n")) for line in naive_lines(data)]
    expected = [number for number, line in enumerate(each, 1) if re.search(pattern, line)]
    hits: list[int] = []
    contexts: list[int] = []
    start: int | None = 0
    while start is not None:
        answer = grep(reader, view, pattern, bound, context=context, start_byte=start)
        assert len(answer.text.encode("utf-8", "surrogatepass")) <= bound.bytes
        # Not splitlines: content may hold characters that Python, unlike a view, takes for line ends.
        rows = [re.match(r"(\d+)(?: \(byte \d+, char \d+\))?([:-])", row) for row in answer.text.split("\n")]
        hits += [int(row[1]) for row in rows if row and row[2] == ":"]
        contexts += [int(row[1]) for row in rows if row and row[2] == "-"]
        assert answer.next is None or answer.next > start
        assert answer.hits or answer.next is None
        start = answer.next
    assert sorted(set(hits)) == expected
    assert len(set(contexts)) == len(contexts)
    assert not set(contexts) & set(expected)


@given(contents, st.sampled_from(["needle", "a", "é", "x+", "$", "^", "."]), st.integers(4, 12), st.integers(4, 40))
def test_the_size_of_blocks_changes_no_hit(data: bytes, pattern: str, block: int, reach: int) -> None:
    compiled = compile_pattern(pattern, ignore_case=False, literal=False)

    def hits(size: int) -> list[tuple[int, int]]:
        search = Search(memoryview(data), compiled, 0, line_start=0, reach=reach, block=size)
        return [tuple(hit) for hit in search.hits()]

    assert hits(block) == hits(1 << 20)
