"""Counting tokens: exactly where a vocabulary fits, from samples where the text is long, and always saying which."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from slow import slow

from overspill.text import tokens

LINE = "2026-11-15T04:27:09Z ERROR request 4711 failed: connection reset by peer\n"


def test_short_text_is_counted_exactly_when_no_model_is_named():
    assert tokens.count("hello world") == tokens.Count(2, estimated=False)


def test_nothing_has_no_tokens():
    assert tokens.count("") == tokens.Count(0, estimated=False)


@pytest.mark.parametrize(
    ("model", "estimated"),
    [
        ("openai/gpt-4o", False),
        ("openai/gpt-4-turbo", False),
        ("meta/llama-3.1-8b", False),
        ("ollama/qwen2.5-coder", False),
        ("deepseek/deepseek-chat", False),
        ("mistral/mistral-large", False),
        ("anthropic/claude-haiku-4", True),
        ("google/gemini-3-pro", True),
    ],
)
def test_a_count_is_an_estimate_where_the_model_has_no_vocabulary_here(model: str, estimated: bool):
    assert tokens.count(LINE, model).estimated is estimated
    assert tokens.has_vocabulary(model) is not estimated


def test_vocabularies_differ():
    text = "naïve façade — 東京タワー " * 20
    assert tokens.count(text, "openai/gpt-4o").tokens < tokens.count(text, "openai/gpt-4").tokens


def test_long_text_is_sampled_and_close():
    text = "".join(f"{i:06d} {LINE}" for i in range(8000))
    exact = sum(tokens.count(text[i : i + 100_000]).tokens for i in range(0, len(text), 100_000))
    sampled = tokens.count(text)
    assert sampled.estimated
    assert abs(sampled.tokens - exact) < exact * 0.03


def test_lone_surrogates_are_counted_like_the_replacement_a_model_sees():
    assert tokens.count("a\ud800b").tokens == tokens.count("a\ufffdb").tokens


@pytest.mark.parametrize(("limit", "more"), [(0, True), (1, True), (2, False), (50, False)])
def test_more_than_is_strict(limit: int, more: bool):
    assert tokens.has_more_than("hello world", limit) is more


def test_more_than_stops_when_it_knows():
    assert tokens.has_more_than(LINE * 2_000_000, 10_000)
    assert not tokens.has_more_than(LINE * 10_000, 1_000_000)


VOCABULARIES = [
    "openai/gpt-4o",
    "openai/gpt-4",
    "openai/gpt-oss-20b",
    "deepseek/deepseek-chat",
    "ollama/qwen3",
    "z/glm-4",
    "moonshot/kimi-k2",
    "meta/codellama",
    "meta/llama-2-7b",
    "meta/llama-3.1-8b",
    "mistral/mixtral-8x22b",
    "mistral/mistral-7b",
    "mistral/mistral-large",
    "google/gemma-3",
    "microsoft/phi-4",
    "ai2/olmo-2",
]


@pytest.mark.parametrize("model", [*VOCABULARIES[:4], *slow(*VOCABULARIES[4:])])
def test_the_spelling_of_a_special_token_is_counted_as_the_text_that_it_is(model: str):
    """Otherwise a page full of them would look much smaller than it is."""
    assert tokens.count("<|endoftext|>" * 100, model).tokens > 300


@pytest.mark.parametrize("model", [*VOCABULARIES[:4], *slow(*VOCABULARIES[4:])])
def test_a_text_counts_the_same_beside_a_special_token_and_alone(model: str):
    text = "naïve façade — 東京タワー\n\tif x < 5: return [y | z]\n" * 30
    alone, beside = (tokens.count(each, model).tokens for each in (text, f"{text}\n<|endoftext|>\n"))
    special = tokens.count("<|endoftext|>\n", model).tokens
    assert alone + special - 2 <= beside <= alone + special + 2


def test_loading_a_vocabulary_changes_no_count():
    tokens.load("openai/gpt-4o")
    assert tokens.count("hello world", "openai/gpt-4o") == tokens.Count(2, estimated=False)


@pytest.mark.parametrize("model", [None, "gpt-4", "llama-2", "mistral-7b", "mistral-large", "gemma", "qwen", "kimi", "claude"])
@given(text=st.text(max_size=60))
@example("\n" * 9)
@example(" ")
@example("㊙﷽ ﷽")
def test_no_vocabulary_makes_more_tokens_than_the_bound(model: str | None, text: str):
    assert tokens.count(text, model).tokens <= tokens.bound(text)


def test_an_estimate_needs_no_vocabulary():
    assert tokens.count("x" * 9, tokens.ESTIMATE) == tokens.Count(3, estimated=True)
