import sys
from collections.abc import Callable, Sequence
from types import FrameType

import pytest

from overspill import handles
from overspill.extraction import spelling
from overspill.extraction.chunks import Span
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.extraction.spelling import simplify
from overspill.store.memory import MemoryStore
from overspill.types import Excerpt


def located(content: str | bytes, *quotes: str | ModelQuote, chunks: tuple[Span, ...] = ()) -> Located:
    shelf = MemoryStore().open_shelf(handles.new())
    writer = shelf.create(file := handles.new())
    writer.append(content.encode() if isinstance(content, str) else content)
    writer.commit()
    reader = shelf.open(file)
    return locate(reader, [quote if isinstance(quote, ModelQuote) else ModelQuote(quote) for quote in quotes], chunks)


def spans(result: Located) -> list[tuple[int, int]]:
    return [(excerpt.start_byte, excerpt.end_byte) for excerpt in result.excerpts]


def test_a_quote_is_given_its_place_in_every_unit():
    result = located("première\nzweite Zeile\nthird\n", "zweite Zeile")
    assert result.excerpts == (
        Excerpt("zweite Zeile", start_byte=10, end_byte=22, start_char=9, end_char=21, start_line=2, end_line=2),
    )
    assert (result.quotes, result.missing) == (1, 0)


def test_quotes_that_are_not_in_the_document_are_counted_and_dropped():
    result = located("one two three", "one two", "four five six", "seven")
    assert [excerpt.text for excerpt in result.excerpts] == ["one two"]
    assert (result.quotes, result.missing) == (3, 2)


@pytest.mark.parametrize(
    ("stored", "quote"),
    [
        ("    if  x:\n        return  1", "if x: return 1"),
        (r'{"m":"line one\nline \"two\" \ud83d\ude00 caf\u00e9"}', 'line one line "two" 😀 café'),
        ('say "yes" or line\none', r"say \"yes\" or line\none"),
        ("fish &amp; chips &lt;b&gt; caf&eacute; &#233;t&#xe9;", "fish & chips <b> café été"),
        ("fish & chips <b> café", "fish &amp; chips &lt;b&gt; caf&eacute;"),
        ("he said “it’s – fine”", 'he said "it\'s - fine"'),
        ('he said "it\'s - fine"', "he said “it’s – fine”"),
        (r"C:\new\table and https:\/\/a.b\/c", r"C:\new\table  and https://a.b/c"),
        (r"C:\\new\\table and more", r"C:\new\table and more"),
        ("a\u00a0non-breaking\u2003space", "a non-breaking space"),
        ("tabs\tand\r\nline ends", "tabs and line ends"),
        ("https://x.y/?a=1&para=2  end", "https://x.y/?a=1&para=2 end"),
    ],
)
def test_a_quote_may_differ_in_white_space_marks_and_escapes(stored: str, quote: str):
    result = located(f"before | {stored.strip()} | after", quote)
    assert result.missing == 0
    assert simplify(result.excerpts[0].text) == simplify(quote)
    assert f"before | {stored.strip()} | after".encode()[slice(*spans(result)[0])].decode() == result.excerpts[0].text


def test_the_excerpt_is_the_stored_text_not_the_quote():
    assert located("x = {\n  'a':   1,\n}", "x = { 'a': 1,").excerpts[0].text == "x = {\n  'a':   1,"


def test_bytes_that_are_not_text_are_matched_by_what_was_shown_for_them():
    result = located(b"caf\xe9 au lait\xff \xed\xa0\x80 end", "caf\ufffd au lait\ufffd \ufffd end\ufffd")
    assert spans(result) == [(0, 21)]


def test_short_quotes_must_match_exactly():
    assert located("a  b", "a b").missing == 1
    assert spans(located("id: 42", "42")) == [(4, 6)]


@pytest.mark.parametrize(
    "quote", ['"GET /a 500"', "`GET /a 500`", "“GET  /a 500”", "12: GET /a 500", "12-GET /a  500", "L12 | GET /a 500"]
)
def test_marks_and_line_numbers_that_a_model_added_are_removed(quote: str):
    assert spans(located("---\nGET /a 500\n", quote)) == [(4, 14)]


def test_a_quote_is_found_where_it_came_from_first():
    content = "same line\n" * 10
    chunks = (Span(0, 60), Span(50, 100))
    result = located(content, ModelQuote("same line", chunks[1]), chunks=chunks)
    assert spans(result) == [(50, 59)]
    assert result.excerpts[0].chunk_index == 1


def test_in_an_overlap_the_chunk_it_came_from_counts():
    content = "a" * 52 + " needle " + "b" * 40
    chunks = (Span(0, 60), Span(50, 100))
    assert located(content, ModelQuote("needle", chunks[0]), chunks=chunks).excerpts[0].chunk_index == 0
    assert located(content, ModelQuote("needle", chunks[1]), chunks=chunks).excerpts[0].chunk_index == 1
    assert located(content, ModelQuote("needle"), chunks=chunks).excerpts[0].chunk_index == 1


def test_a_quote_from_elsewhere_is_found_everywhere():
    chunks = (Span(0, 10), Span(10, 40))
    result = located("0123456789 the quick brown fox and more", ModelQuote("quick  brown", chunks[0]), chunks=chunks)
    assert spans(result) == [(15, 26)]
    assert result.excerpts[0].chunk_index == 1


def test_neighbouring_and_overlapping_quotes_become_one_excerpt():
    content = "first line\n  second line\nthird line\n\nfifth line\n"
    result = located(content, "second line", "first line", "line\nthird", "fifth line", "first")
    assert [excerpt.text for excerpt in result.excerpts] == ["first line\n  second line\nthird", "fifth line"]
    assert [(excerpt.start_line, excerpt.end_line) for excerpt in result.excerpts] == [(1, 3), (5, 5)]
    assert (result.quotes, result.missing) == (5, 0)


def test_quotes_that_hide_each_other_are_all_found():
    assert located("alpha beta gamma delta", "alpha beta gamma", "beta gamma delta", "beta", "alpha").missing == 0


def count_searched_bytes(content: str, quotes: Sequence[str]) -> tuple[int, Located]:
    """How many bytes the search for these quotes goes through, all passes together, and what it finds."""
    searched = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal searched
        if event == "call" and frame.f_code is spelling.find_matches.__code__:
            searched += sum(span.end - span.start for span in frame.f_locals["spans"])

    sys.setprofile(count)
    try:
        result = located(content, *quotes)
    finally:
        sys.setprofile(None)
    return searched, result


def nested(count: int) -> list[str]:
    return [PASSAGE[: 20 + length] for length in range(count)]


def staggered(count: int) -> list[str]:
    return [PASSAGE[start : start + 200] for start in range(count)]


PASSAGE = "".join(f"{number} " for number in range(400))


@pytest.mark.parametrize("overlapping", [nested, staggered])
@pytest.mark.slow
def test_twice_as_many_overlapping_quotes_do_not_take_twice_as_many_passes(overlapping: Callable[[int], list[str]]):
    content = "filler line\n" * 20_000 + PASSAGE + "\nfiller line" * 20_000
    for count in (40, 80):
        searched, result = count_searched_bytes(content, overlapping(count))
        assert len(content) <= searched < 2 * len(content)
        assert result.missing == 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 40])
def test_a_document_that_hides_each_quote_behind_the_one_before_is_not_searched_for_ever(count: int):
    content = ("-" * 2000).join(PASSAGE[: 200 + end] for end in range(count))
    searched, result = count_searched_bytes(content, staggered(count))
    assert searched < 20 * len(content)
    assert result.excerpts


def test_many_quotes_are_found_in_one_search():
    lines = [f"request {number} took {number * 7} ms" for number in range(3000)]
    result = located("\n".join(lines), *lines[::2])
    assert (len(result.excerpts), result.missing) == (1500, 0)


def test_a_line_that_occurs_a_thousand_times_is_found_once():
    result = located("tick  tock goes the clock\n" * 1000, "tick tock goes the clock", "this is not there at all")
    assert spans(result) == [(0, 25)]
    assert result.missing == 1


def test_positions_are_right_far_into_a_large_document():
    content = "zeile mit ümlaut\r\n" * 300_000 + "the needle\r\n\rthe end\r"
    result = located(content, "the needle", "the end")
    assert [(each.start_char, each.start_line, each.end_line) for each in result.excerpts] == [
        (5_400_000, 300_001, 300_001),
        (5_400_013, 300_003, 300_003),
    ]


def test_a_place_between_cr_and_lf_is_on_the_line_they_end():
    assert [each.start_line for each in located("one\r\ntwo\r\n", "\ntwo").excerpts] == [1]


def test_a_very_long_quote_is_found_exactly():
    long = "".join(f"{number} " for number in range(5000)).strip()
    content = "x" * 4_194_000 + long + "y"
    assert spans(located(content, long)) == [(4_194_000, 4_194_000 + len(long))]
    assert located(content, long + "z", long.replace(" ", "  ")).missing == 2


def test_quotes_in_the_order_of_the_document_are_found_one_after_the_other():
    content = "start a\nsame\nstart b\nsame\n"
    scope = Span(0, len(content))
    assert spans(located(content, ModelQuote("start b", scope), ModelQuote("same", scope))) == [(13, 25)]
    assert spans(located(content, ModelQuote("start b", scope), ModelQuote("start a", scope))) == [(0, 7), (13, 20)]
