"""Counts tokens with the model's own vocabulary if available, and marks every other count as an estimate."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct

from overspill.text.encoding import clean, encode
from overspill.text.regex import Pattern, regex

try:  # Wheels exist for common platforms only. Elsewhere, four characters count as a token.
    from splintr import Tokenizer
except ImportError:  # pragma: no cover
    Tokenizer = None

MAX_EXACT_CHARS = 256 * 1024  # longer strings are sampled
CHARS_PER_TOKEN = 4
ESTIMATE = "overspill/estimate"
"""Use this instead of a model's name to count four characters as a token without loading a vocabulary."""
_DEFAULT_VOCABULARY = "o200k_base"
_SAMPLE_CHARS = 4096
_SAMPLES = 32
_OPENING = "<|"  # how most special tokens begin
_BYTES_PER_ID = 4

_VOCABULARIES: tuple[tuple[Pattern[str], str], ...] = (
    # The first pattern that matches the model's name, without its provider, wins.
    (regex(r"gpt-oss"), "gpt-oss"),
    (regex(r"gpt-4o|gpt-4\.|gpt-5|chatgpt|o[134](-|$)"), _DEFAULT_VOCABULARY),
    (regex(r"gpt-4|gpt-3\.5|text-embedding"), "cl100k_base"),
    (regex(r"deepseek"), "deepseek_v3"),
    (regex(r"qwen"), "qwen3"),
    (regex(r"glm"), "glm4"),
    (regex(r"kimi"), "kimi_k2"),
    (regex(r"codellama"), "codellama"),
    (regex(r"llama-?2"), "llama2"),
    (regex(r"llama"), "llama3"),
    (regex(r"mixtral-8x22|codestral"), "mistral_v2"),
    (regex(r"mixtral|mistral-7b"), "mistral_v1"),
    (regex(r"mistral|pixtral|ministral|devstral"), "mistral_v3"),
    (regex(r"gemma"), "gemma3"),
    (regex(r"phi-?4"), "phi4"),
    (regex(r"olmo-?2"), "olmo2"),
)


class Count(Struct, frozen=True):
    tokens: int
    estimated: bool


class _Vocabulary:
    """Counts with `encode_batch_flat`, which lets other threads run. But that reads the spelling of a special token as the token
    itself. No model does so with untrusted text, so text with such a spelling is counted the slower way."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._specials = tuple(encoder.special_tokens())
        opened = any(special.startswith(_OPENING) for special in self._specials)
        self._hints = (*([_OPENING] if opened else []), *(each for each in self._specials if not each.startswith(_OPENING)))

    def count(self, text: str) -> int:
        if any(hint in text for hint in self._hints) and any(special in text for special in self._specials):
            return len(self._encoder.encode_ordinary(text))
        return len(self._encoder.encode_batch_flat([text])[0]) // _BYTES_PER_ID


def load(model: str | None = None) -> None:
    """Load the model's vocabulary now. This blocks all other threads for a tenth of a second, so do it before any call."""
    _encoder(model)


def count(text: str, model: str | None = None) -> Count:
    """The number of tokens: exact up to 256 K characters with a known vocabulary, or with no model named; otherwise estimated."""
    encoder, fits = _encoder(model)
    if encoder is None:
        return Count(-(-len(text) // CHARS_PER_TOKEN), True)
    if len(text) <= MAX_EXACT_CHARS:
        return Count(_length(encoder, text), not fits)
    step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
    sample = sum(_length(encoder, text[i * step : i * step + _SAMPLE_CHARS]) for i in range(_SAMPLES))
    return Count(round(sample * len(text) / (_SAMPLE_CHARS * _SAMPLES)), True)


def bound(text: str) -> int:
    """The most tokens that any vocabulary can make of the text. Does not load a vocabulary."""
    return len(encode(text)) + 1  # a token has at least one byte, and some vocabularies begin with a space


def has_more_than(text: str, limit: int) -> bool:
    """Whether a text has more than `limit` tokens. Stops counting when that is certain."""
    if len(text) * 4 <= limit:  # a token has at least one byte, a character at most four
        return False
    encoder, _ = _encoder(None)
    if encoder is None:
        return count(text).tokens > limit
    found = 0
    for start in range(0, len(text), MAX_EXACT_CHARS):
        found += _length(encoder, text[start : start + MAX_EXACT_CHARS])
        if found > limit:
            return True
    return False


def has_vocabulary(model: str | None) -> bool:
    encoder, fits = _encoder(model)
    return encoder is not None and fits


@cache
def _encoder(model: str | None) -> tuple[_Vocabulary | None, bool]:
    if Tokenizer is None or model == ESTIMATE:
        return None, False
    if not model:
        return _load(_DEFAULT_VOCABULARY), True
    name = model.rsplit("/", 1)[-1].lower()
    for pattern, vocabulary in _VOCABULARIES:
        if pattern.search(name):
            return _load(vocabulary), True
    return _load(_DEFAULT_VOCABULARY), False


@cache
def _load(vocabulary: str) -> _Vocabulary:
    assert Tokenizer is not None
    return _Vocabulary(Tokenizer.from_pretrained(vocabulary))


def _length(vocabulary: _Vocabulary, text: str) -> int:
    try:
        return vocabulary.count(text)
    except UnicodeEncodeError:  # lone surrogates, which a model sees as U+FFFD
        return vocabulary.count(clean(text))
