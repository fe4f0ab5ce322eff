"""What answers when no model can."""

import pytest
from asking import once, stored
from msgspec import Struct

from overspill.extraction import Document, ExtractionFailed, Mode, Policy, extract
from overspill.models.protocol import ModelError
from overspill.store.meter import size_of
from overspill.testing import ScriptedModel

LOG = "".join(f"line {number}\n" for number in range(1, 5001)) + "the needle\n"


class Found(Struct, frozen=True):
    start_byte: int
    end_byte: int
    shown: str = ""


class Selection(Struct, frozen=True):
    text: str
    excerpts: tuple[Found, ...]
    confidence: float
    searched_bytes: int
    matched: int = 0


def engine(document: Document, query: str, max_tokens: int) -> Selection:
    """Finds the query as it stands."""
    assert max_tokens == 2000
    at = bytes(document.reader.buffer()).find(query.encode())
    if at < 0:
        return Selection("nothing", (), 0.0, document.size.bytes)
    return Selection(f"[found] {query}", (Found(at, at + len(query)),), 0.75, document.size.bytes)


def broken_engine(document: Document, query: str, max_tokens: int) -> Selection:
    raise MemoryError("too large")


def failing() -> ScriptedModel:
    return ScriptedModel(lambda _: ModelError("Bad key.", is_transient=False))


@pytest.mark.parametrize(
    ("mode", "planned"),
    [("auto", "full-chunked"), ("full-chunked", "full-chunked"), ("snippets", "full-chunked"), ("read-grep", "read-grep")],
)
async def test_without_a_model_the_engine_answers_in_every_mode(mode: Mode, planned: str):
    result = await extract(stored(LOG), "needle", mode=mode, engine=engine)
    assert (result.text, result.confidence) == ("[found] needle", 0.75)
    assert (result.strategy, result.planned_strategy) == ("builtin", planned)
    assert (result.model, result.warnings, result.found) == ("builtin/lexical", (), True)
    assert [(each.text, each.start_line, each.start_byte) for each in result.excerpts] == [("needle", 5001, len(LOG) - 7)]


async def test_an_engine_without_matches_answers_that_nothing_was_found():
    result = await extract(stored(LOG), "haystack", engine=engine)
    assert (result.found, result.text) == (False, "No content matching query found in tool output.\nnothing")


async def test_a_match_too_large_for_the_answer_still_counts_as_found():
    def narrow(document: Document, query: str, max_tokens: int) -> Selection:
        return Selection("(matched 3 records, none fits)", (), 0.0, document.size.bytes, matched=3)

    result = await extract(stored(LOG), "needle", engine=narrow)
    assert (result.found, result.text, result.excerpts) == (True, "(matched 3 records, none fits)", ())


async def test_the_engine_says_how_far_it_searched():
    def near_sighted(document: Document, query: str, max_tokens: int) -> Selection:
        return Selection("", (), 0.0, 1000)

    result = await extract(stored(LOG), "needle", engine=near_sighted)
    assert result.warnings == (f"Only the first 1,000 of {len(LOG):,} bytes were searched.",)


async def test_a_failed_strategy_is_answered_by_the_engine_with_a_warning():
    result = await extract(stored(LOG), "needle", mode="full-chunked", model=once(failing()), engine=engine)
    assert result.text == "[found] needle"
    assert result.model == "builtin/lexical"
    assert result.warnings == (
        "full-chunked extraction failed: The document could not be read. Bad key. "
        "The built-in engine answered instead: passages by their words, no model.",
    )


async def test_the_last_resort_shows_both_ends_with_a_warning():
    result = await extract(
        stored(LOG), "needle", mode="read-grep", model=once(failing()), policy=Policy(fallback=("truncate",)), engine=engine
    )
    assert result.strategy == "truncate"
    assert result.text.startswith("line 1\nline 2\n")
    assert result.text.endswith("line 5000\nthe needle\n")
    assert "omitted] ..." in result.text
    assert size_of(result.text).tokens <= 2000
    assert result.warnings == (
        "read-grep extraction failed: Bad key. "
        "What follows is not an extraction: the beginning and the end of the output, with the middle left out.",
    )
    assert (result.excerpts, result.confidence, result.chunks_searched) == ((), 0.0, 0)


async def test_the_next_fallback_answers_when_the_engine_fails():
    result = await extract(stored(LOG), "needle", model=once(failing()), engine=broken_engine)
    assert result.strategy == "truncate"
    assert "The built-in engine failed (too large). What follows" in result.warnings[0]
    alone = await extract(stored(LOG), "needle", engine=broken_engine)
    assert alone.warnings[0].startswith("The built-in engine failed (too large). What follows")


async def test_without_a_model_and_an_engine_both_ends_are_shown():
    result = await extract(stored(LOG), "needle")
    assert result.strategy == "truncate"
    assert result.warnings[0].startswith("There is no model and no engine to extract with. ")


async def test_a_small_output_is_shown_whole():
    result = await extract(stored("all of it"), "needle", model=once(failing()), policy=Policy(fallback=("truncate",)))
    assert result.text == "all of it"
    assert result.warnings[0].endswith("What follows is not an extraction: it is the whole output.")


async def test_with_nothing_to_fall_back_on_it_fails():
    with pytest.raises(ExtractionFailed, match=r"Bad key\. No fallback is configured"):
        await extract(stored(LOG), "needle", model=once(failing()), policy=Policy(fallback=()), engine=engine)


async def test_you_can_ask_for_truncation():
    result = await extract(stored(LOG), "needle", mode="truncate", model=once(failing()), engine=engine)
    assert (result.strategy, result.warnings) == ("truncate", ())


@pytest.mark.parametrize("content", ["short", "é" * 300, "日本語" * 90_000, "", "0123456789abcdef" * 4000])
async def test_truncation_stays_within_its_bound(content: str):
    result = await extract(stored(content), "x", mode="truncate", policy=Policy(max_tokens=500))
    assert size_of(result.text).tokens <= 500
    if size_of(content).tokens <= 500:
        assert result.text == content
    else:
        assert result.text[:10] == content[:10]
        assert result.text[-10:] == content[-10:]
