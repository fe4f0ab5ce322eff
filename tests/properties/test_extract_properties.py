from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from overspill.extraction import chunks, report
from overspill.extraction.chunks import Span
from overspill.extraction.provenance import ModelQuote, locate
from overspill.extraction.spelling import simplify
from overspill.extraction.wrapper import closing_tag, opening_tag, unwrap
from overspill.reading.positions import View
from overspill.text.encoding import character_start

NONCE = "0a1b2c3d4e5f"


class Bytes:
    """Stored bytes, in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)

    def read(self, start: int, end: int) -> bytes:
        return self.content[start:end]

    def buffer(self) -> memoryview:
        return memoryview(self.content)

    def close(self) -> None: ...


def cases(alphabet: str) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(alphabet) | st.characters(codec="utf-8"), max_size=400)


contents = st.one_of(
    cases("ab \n\r日😀").map(str.encode), st.binary(max_size=400), cases("a\n").map(lambda text: (text * 50).encode())
)


def spread(tokens: int, content: bytes) -> Callable[[chunks.Span], int]:
    """Counts as if so many tokens were spread evenly over the content."""
    return lambda span: -(-(span.end - span.start) * tokens // max(1, len(content)))


@given(contents, st.integers(1, 2000), st.integers(1, 500), st.integers(0, 50))
def test_chunks_cover_every_byte_between_characters(content: bytes, tokens: int, most: int, overlap: int):
    spans = chunks.plan(Bytes(content), most, overlap, spread(tokens, content))
    assert spans[0].start == 0
    assert spans[-1].end == len(content)
    for before, after in pairwise(spans):
        assert before.start <= after.start <= before.end < after.end
    for cut in {place for span in spans for place in span} - {len(content)}:
        assert character_start(content, cut) == cut


@given(
    st.integers(1, 40), st.integers(2000, 20_000), st.integers(0, 50), st.sampled_from([b"x", b"line of text\n", "日本".encode()])
)
def test_chunks_are_of_one_size(parts: int, size: int, overlap: int, unit: bytes):
    content = (unit * size)[:size]
    spans = chunks.plan(Bytes(content), 1000, overlap, spread(parts * 1000, content))
    sizes = [span.end - span.start for span in spans]
    assert max(sizes) - min(sizes) <= 2 * (max(sizes) // 20 + 4)


@given(st.text(max_size=300))
def test_the_wrapper_parser_never_raises(text: str):
    tags = text.replace("a", opening_tag(NONCE)).replace("b", closing_tag(NONCE)).replace("c", "<think>").replace("d", "</think>")
    for each in (text, tags):
        content = unwrap(each, NONCE)
        assert content is None or content.strip()


@given(st.text(max_size=300))
def test_any_content_comes_out_of_its_wrapper(text: str):
    content = unwrap(f"{opening_tag(NONCE)}{text}{closing_tag(NONCE)}", NONCE)
    assert content is None or content in text.replace("\u200b", "").replace("\u2060", "").replace("\ufeff", "").replace(
        "\x00", ""
    )


@given(st.text(max_size=300).map(lambda text: text.replace("q", "\nQUOTES:\n> ").replace("c", "\nCONFIDENCE: 5")))
def test_any_report_can_be_read(text: str):
    read = report.parse(text)
    assert read.stated_confidence is None or 0 <= read.stated_confidence <= 1
    assert all(quote.strip() for quote in read.quotes)


spelled = st.lists(st.sampled_from([*"ab cd\n\r\t\\\"'/&<>-–“é😀\ufffd", "\\n", "\\u00e9", "&amp;", "&quot;"]), max_size=80).map(
    "".join
)


@given(st.lists(spelled, max_size=4), st.lists(spelled.filter(str.strip), min_size=1, max_size=5), st.booleans())
def test_every_excerpt_is_in_the_source_at_its_span(around: list[str], quotes: list[str], held: bool):
    content = "|".join([*around, *(quotes if held else [])]).encode()
    reader = Bytes(content)
    half = len(content) // 2
    asked = [ModelQuote(quote, Span(0, half) if number % 2 else None) for number, quote in enumerate(quotes)]
    located = locate(reader, asked)
    for excerpt in located.excerpts:
        assert content[excerpt.start_byte : excerpt.end_byte].decode() == excerpt.text
        assert content.decode()[excerpt.start_char : excerpt.end_char] == excerpt.text
        assert View(reader).line_at(excerpt.start_byte) == excerpt.start_line
        assert View(reader).line_at(excerpt.end_byte - 1) == excerpt.end_line
    if held:
        assert located.missing == 0
    ends = [excerpt.end_byte for excerpt in located.excerpts]
    assert all(end < excerpt.start_byte for end, excerpt in zip(ends, located.excerpts[1:], strict=False))


@given(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "“delta”", "épsilon", "a/b", "x&y", "it's"]), min_size=3, max_size=12),
    st.data(),
)
def test_a_quote_in_other_spelling_is_found(words: list[str], data: st.DataObject):
    content = data.draw(st.sampled_from([" ", "\n", "\t\t", "\\n", "\u00a0"])).join(words)
    quote = " ".join(words).replace("“", '"').replace("”", '"').replace("&", "&amp;")
    reader = Bytes(f"<< {content} >>".encode())
    located = locate(reader, [ModelQuote(quote)])
    assert located.missing == 0
    assert simplify(located.excerpts[0].text) == simplify(content)
