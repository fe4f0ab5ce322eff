"""What a model reads about an extraction stays within its bound, and says what gave way."""

import json

import pytest
from msgspec.structs import replace

from overspill import handles
from overspill.reading import Bound
from overspill.retrieval.extracted import format_abstract, format_snippets
from overspill.types import Excerpt, Extraction, Kept, Size

KEPT = Kept(handles.new(), handles.new(), "read_log", "size_cap", Size(99_999, 99_999, 999, 25_000), "ab" * 32, 1)
TEXT = "".join(f"sentence {number:04} of the answer\n" for number in range(1000))
QUOTE = Excerpt("x" * 300, 0, 300, 0, 300, 1, 1)


def found(text: str, *excerpts: Excerpt) -> Extraction:
    return Extraction(text, excerpts, 0.9, "full-chunked", "ab" * 32, 99_999, 1, 1, model="test/m")


def test_the_words_of_citations_give_way_before_their_places():
    answer = found("Short.", QUOTE)
    assert ": " + "x" * 300 in format_abstract(KEPT, answer, Bound(2_000)).text
    shorter = format_abstract(KEPT, answer, Bound(400)).text
    assert shorter.endswith("[1] line 1, bytes 0-300")
    assert format_abstract(KEPT, answer, Bound(270)).text.endswith("]\nCITATIONS: 1 checked, none fits.")


@pytest.mark.parametrize("bound", [700, 1_500, 12_288])
def test_as_many_citations_stand_below_an_answer_as_fit_and_how_many_more_were_checked(bound: int):
    shown = format_abstract(KEPT, found("Short.", *[QUOTE] * 1000), Bound(bound)).text
    assert bound - 40 < len(shown.encode()) <= bound
    count = shown.count(" line 1, bytes 0-300\n")
    assert count > 5
    assert shown.endswith(f"\n[{count}] line 1, bytes 0-300\n{1000 - count} more were checked but do not fit.")


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("bound", [400, 1_000, 5_000, 12_288])
def test_a_text_over_the_bound_ends_with_how_much_is_left_out(bound: int):
    shown = format_abstract(KEPT, found(TEXT, QUOTE), Bound(bound)).text
    assert len(shown.encode()) <= bound
    assert "[Remainder omitted: " in shown


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("bound", [1_500, 5_000, 12_288])
def test_what_a_model_said_without_support_gives_way_before_the_evidence(bound: int):
    answer = replace(found("Short.", QUOTE), unsupported=f"{TEXT}\ud800")
    shown = format_abstract(KEPT, answer, Bound(bound)).text
    assert len(shown.encode()) <= bound
    assert "sentence 0003 of" in shown
    assert "[Remainder omitted: " in shown
    assert "x" * 300 in shown
    shown = format_snippets(KEPT, answer, Bound(bound)).text
    assert len(shown.encode()) <= bound
    assert [snippet["text"] for snippet in json.loads(shown)["snippets"]] == ["x" * 300]
    assert "[Remainder omitted: " in json.loads(shown)["unsupported"]


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("text", ['"quoted"\n' * 1_200, "\x01" * 9_000, "é\t" * 4_000], ids=["quotes", "controls", "accents"])
def test_a_shortened_text_stays_within_the_bound_in_json(text: str):
    shown = format_snippets(KEPT, replace(found(text), strategy="truncate"), Bound(12_288)).text
    assert len(shown.encode()) <= 12_288
    assert "[Remainder omitted: " in json.loads(shown)["truncated"]
