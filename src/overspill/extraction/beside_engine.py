"""A model's answer with the engine's passages below it, so that no model makes a reply worse than the engine's alone."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from overspill.extraction.document import ExtractionFailed, ModelMode, name_strategy
from overspill.extraction.fallback import BY_ENGINE, ask_engine, fall_back
from overspill.extraction.findings import cut_to_tokens
from overspill.extraction.full_chunked import compute_chunk_tokens
from overspill.extraction.inquiry import Inquiry
from overspill.extraction.strategies import choose_plain_mode, extract_by_mode, needs_whole
from overspill.text import tokens
from overspill.text.encoding import encode
from overspill.types import LIKELY, Extraction

DENIED = "{model} found nothing, but the built-in engine is confident that it did."
UNSUPPORTED = "Nothing was found in the stored output that supports the answer of {model}."

_ANSWER_SHARE = 0.08
"""Of the tokens of a reply, for the model's words. With as much less, the engine's passages hold nearly as many answers."""
_WHOLE_ANSWER_SHARE = 0.5
"""For a summary or a list, which passages cannot replace."""
_UNSUPPORTED_SHARE = 0.05
_MIN_ANSWER_TOKENS = 48
_MIN_PASSAGE_TOKENS = 32
_OUR_BYTES = 480
"""Of our own words in a reply: its first line, the marks of two blocks, and two headings."""
_BYTES_PER_TOKEN = 5
"""Of plain words."""


async def extract_beside_engine(inquiry: Inquiry, mode: Literal["auto"] | ModelMode) -> Extraction:
    passages = await _ask_engine(inquiry, inquiry.policy.max_tokens)
    room = _find_room(inquiry, passages.text if passages else "")
    if mode == "auto":
        inquiry = replace(inquiry, mode=_choose_mode(inquiry, passages))
    inquiry = replace(inquiry, max_answer_tokens=max(limit_answer(inquiry), room))
    found = await extract_by_mode(inquiry)
    if fault := find_fault(found, passages):
        return await _answer_instead(inquiry, found, passages, fault)
    return await _put_together(inquiry, found, passages) if passages and passages.found else found


def _find_room(inquiry: Inquiry, passages: str) -> int:
    """How many tokens of a model's words fit beside the passages."""
    policy = inquiry.policy
    room = policy.max_tokens - _count_tokens(passages)
    if policy.max_bytes is None:
        return room
    return min(room, (policy.max_bytes - len(encode(passages)) - _OUR_BYTES) // _BYTES_PER_TOKEN)


def find_fault(found: Extraction, passages: Extraction | None) -> str:
    """Why a model's answer does not count; empty if it does."""
    if not found.found:
        is_doubtful = passages is not None and passages.confidence >= LIKELY
        return DENIED.format(model=found.model) if is_doubtful else ""
    return "" if found.support else UNSUPPORTED.format(model=found.model)


def limit_answer(inquiry: Inquiry) -> int:
    has_read_all = inquiry.mode == "full-chunked"
    share = _WHOLE_ANSWER_SHARE if has_read_all and needs_whole(inquiry.query) else _ANSWER_SHARE
    return max(int(inquiry.policy.max_tokens * share), min(_MIN_ANSWER_TOKENS, inquiry.policy.max_tokens))


async def _ask_engine(inquiry: Inquiry, max_tokens: int) -> Extraction | None:
    """None where the engine may not answer, or failed: the model then answers alone."""
    if inquiry.engine is None or "builtin" not in inquiry.policy.fallback:
        return None
    policy = replace(inquiry.policy, max_tokens=max_tokens)
    try:
        return await ask_engine(inquiry.document, inquiry.query, policy, inquiry.engine, name_strategy(inquiry.mode))
    except ExtractionFailed:
        return None


def _choose_mode(inquiry: Inquiry, passages: Extraction | None) -> ModelMode:
    confidence = passages.confidence if passages and passages.excerpts else None
    size, chunk_tokens, is_large = inquiry.document.size, compute_chunk_tokens(inquiry), inquiry.model.is_large
    return choose_plain_mode(size, inquiry.policy, chunk_tokens, inquiry.query, confidence, is_model_large=is_large)


async def _answer_instead(inquiry: Inquiry, found: Extraction, passages: Extraction | None, fault: str) -> Extraction:
    """The engine, or the next fallback. What the model said comes last, in the room that is left."""
    if not inquiry.policy.fallback:
        return replace(found, warnings=(*found.warnings, fault))
    words = _shorten(inquiry, found.text) if found.found else ""
    if passages is None:
        planned = name_strategy(inquiry.mode)
        answer = await fall_back(inquiry.document, inquiry.query, planned, inquiry.policy, None, fault)
        return replace(answer, unsupported=words)
    warnings = (f"{fault} {BY_ENGINE}", *passages.warnings)
    passages = await _fit_passages(inquiry, passages, words)
    return replace(passages, warnings=warnings, unsupported=words, planned_strategy=found.strategy)


def _shorten(inquiry: Inquiry, said: str) -> str:
    most = max(int(inquiry.policy.max_tokens * _UNSUPPORTED_SHARE), min(_MIN_ANSWER_TOKENS, inquiry.policy.max_tokens))
    return cut_to_tokens(said, most)


async def _put_together(inquiry: Inquiry, found: Extraction, passages: Extraction) -> Extraction:
    quoted = "\n".join(excerpt.text for excerpt in found.excerpts if not passages.quotes(excerpt))
    if _count_tokens(f"{found.text}\n{quoted}") > limit_answer(inquiry):
        quoted = ""  # their places are enough
    fitted = await _fit_passages(inquiry, passages, f"{found.text}\n{quoted}")
    return replace(found, passages=replace(fitted, warnings=()), warnings=(*found.warnings, *passages.warnings))


async def _fit_passages(inquiry: Inquiry, passages: Extraction, words: str) -> Extraction:
    """Passages that leave room for the words. Whoever puts both into a reply fits them to its bytes."""
    most = max(inquiry.policy.max_tokens - _count_tokens(words), _MIN_PASSAGE_TOKENS)
    return passages if _count_tokens(passages.text) <= most else await _ask_engine(inquiry, most) or passages


def _count_tokens(text: str) -> int:
    """As the reader of the reply counts, who is not the model that extracts."""
    return tokens.count(text).tokens
