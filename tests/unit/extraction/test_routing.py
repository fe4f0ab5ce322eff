"""Which mode `auto` means in the default preset."""

import pytest

from overspill.extraction.document import Policy
from overspill.extraction.strategies import choose_plain_mode, needs_whole
from overspill.models.facts import is_large
from overspill.types import Size

SMALL, LONG = Size(4_000, 4_000, 100, 1_000), Size(400_000, 400_000, 10_000, 100_000)


def choose(size: Size, query: str = "the id", *, confidence: float | None = 0.9, large: bool = True) -> str:
    return choose_plain_mode(size, Policy(), 10_000, query, confidence, is_model_large=large)


def test_a_confident_engine_means_focused():
    assert choose(LONG) == choose(SMALL) == "focused"


def test_a_small_or_unknown_model_reads_passages_whatever_is_asked():
    assert choose(LONG, "a summary", confidence=0.1, large=False) == "focused"


def test_a_question_about_the_whole_goes_to_a_large_model():
    assert choose(LONG, "Summarize the incidents") == "full-chunked"
    huge = Size(40_000_000, 40_000_000, 10_000, 10_000_000)
    assert choose(huge, "Summarize the incidents") == "focused"  # one extraction cannot read it


def test_the_rest_follows_the_documents():
    assert choose(SMALL, confidence=0.1) == "full-chunked"
    assert choose(LONG, confidence=0.1) == "read-grep"
    assert choose(LONG, confidence=None, large=False) == "read-grep"


@pytest.mark.parametrize(
    "query",
    [
        "a summary of the incidents",
        "Summaries of both parts",
        "Summarise it",
        "the incidents, summarised",
        "the incidents, summarized in a few words",
        "what summarizes the incidents",
        "a summarization",
        "Sum up what happened",
        "a recap",
        "the key points",
        "the main takeaways",
        "tl;dr",
        "TLDR of the log",
        "a synopsis",
        "the log in a nutshell",
    ],
)
def test_a_summary_is_read_whole_however_it_is_asked_for(query: str):
    assert choose(LONG, query) == "full-chunked"


@pytest.mark.parametrize("query", ["the sum of line 3", "the key", "the point where it failed", "the id of takeaway.com"])
def test_what_only_resembles_a_summary_is_none(query: str):
    assert choose(LONG, query) == "focused"


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("all errors", True),
        ("How many rows?", True),
        ("an overview", True),
        ("the integrity hash of 1.3.0", False),
        ("why", False),
    ],
)
def test_some_questions_need_the_whole(query: str, whole: bool):
    assert needs_whole(query) is whole


@pytest.mark.parametrize(
    ("target", "large"),
    [
        ("openai/gpt-4.1-mini", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("google/gemini-2.5-flash", True),
        ("google/gemini-2.5-flash-lite", False),
        ("openai/gpt-5-nano", False),
        ("ollama/qwen3:8b", False),
        ("lab/qwen2.5-coder-1.5b", False),
        ("lab/llama-3.3-70b-instruct", True),
        ("lab/something", False),
    ],
)
def test_a_model_is_known_by_its_name(target: str, large: bool):
    assert is_large(target) is large
