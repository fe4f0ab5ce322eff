"""A model's answer with the engine's passages below it, so that no model makes a reply worse than the engine's alone."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from overspill.extraction.document import ExtractionFailed, ModelMode
from overspill.extraction.fallback import BY_ENGINE, STRATEGY_FAILED, ask_engine, fall_back
from overspill.extraction.full_chunked import compute_chunk_tokens
from overspill.extraction.inquiry import Inquiry
from overspill.extraction.routing import CONFIDENT, Situation, choose_plain_mode, needs_whole
from overspill.extraction.strategies import find_strategy
from overspill.truncate import truncate
from overspill.types import Excerpt, Extraction

DENIED = "{model} found nothing, but the built-in engine is confident that it did."
UNSUPPORTED = "Nothing was found in the stored output that supports the answer of {model}."

_ANSWER_SHARE = 0.15
"""Of the tokens of a reply, for the model's words. With as much less, the engine's passages hold as many answers."""
_WHOLE_ANSWER_SHARE = 0.5
"""For a summary or a list, which passages cannot replace."""
_MIN_ANSWER_TOKENS = 48
_MIN_PASSAGE_TOKENS = 32


async def extract_beside_engine(inquiry: Inquiry, mode: Literal["auto"] | ModelMode) -> Extraction:
    passages = await _ask_engine(inquiry, inquiry.policy.max_tokens)
    room = inquiry.policy.max_tokens - (inquiry.count_tokens(passages.text) if passages else 0)
    inquiry = replace(inquiry, max_answer_tokens=max(limit_answer(inquiry), room))
    try:
        if mode == "auto":
            inquiry = replace(inquiry, mode=_choose_mode(inquiry, passages))
        found = inquiry.cache.results.get(inquiry.key) or await find_strategy(inquiry.mode).extract(inquiry)
    except ExtractionFailed as error:
        strategy = find_strategy(inquiry.mode).name
        reason = STRATEGY_FAILED.format(strategy=strategy, reason=error)
        return await fall_back(inquiry.document, inquiry.query, strategy, inquiry.policy, inquiry.engine, reason)
    if fault := find_fault(found, passages):
        return await _answer_instead(inquiry, found, passages, fault)
    return await _put_together(inquiry, found, passages) if passages and passages.found else found


def find_fault(found: Extraction, passages: Extraction | None) -> str:
    """Why a model's answer does not count; empty if it does."""
    if not found.found:
        is_doubtful = passages is not None and passages.confidence >= CONFIDENT
        return DENIED.format(model=found.model) if is_doubtful else ""
    return "" if found.support else UNSUPPORTED.format(model=found.model)


def limit_answer(inquiry: Inquiry) -> int:
    share = _WHOLE_ANSWER_SHARE if needs_whole(inquiry.query) else _ANSWER_SHARE
    return max(int(inquiry.policy.max_tokens * share), min(_MIN_ANSWER_TOKENS, inquiry.policy.max_tokens))


async def _ask_engine(inquiry: Inquiry, max_tokens: int) -> Extraction | None:
    """None where the engine may not answer, or failed: the model then answers alone."""
    if inquiry.engine is None or "builtin" not in inquiry.policy.fallback:
        return None
    policy = replace(inquiry.policy, max_tokens=max_tokens)
    try:
        return await ask_engine(inquiry.document, inquiry.query, policy, inquiry.engine, find_strategy(inquiry.mode).name)
    except ExtractionFailed:
        return None


def _choose_mode(inquiry: Inquiry, passages: Extraction | None) -> ModelMode:
    has_passages = passages is not None and bool(passages.excerpts)
    confidence = passages.confidence if passages and has_passages else 0.0
    size, chunk_tokens = inquiry.document.size, compute_chunk_tokens(inquiry)
    situation = Situation(size, chunk_tokens, inquiry.query, confidence, has_passages, inquiry.model.is_large)
    return choose_plain_mode(situation, inquiry.policy)


async def _answer_instead(inquiry: Inquiry, found: Extraction, passages: Extraction | None, fault: str) -> Extraction:
    """The engine, or the next fallback. What the model said comes last, in the room that is left."""
    said = found.text if found.found else ""
    if not inquiry.policy.fallback:
        return replace(found, warnings=(*found.warnings, fault))
    words, limit = said, len(said)
    while inquiry.count_tokens(words) > limit_answer(inquiry) and limit > 1:
        limit = limit * 4 // 5
        words = truncate(said, limit, "head").text
    left = max(inquiry.policy.max_tokens - inquiry.count_tokens(words), _MIN_PASSAGE_TOKENS) if words else 0
    if passages and words and inquiry.count_tokens(passages.text) > left:
        passages = await _ask_engine(inquiry, left) or passages
    if passages is None:
        strategy = find_strategy(inquiry.mode).name
        answer = await fall_back(inquiry.document, inquiry.query, strategy, inquiry.policy, None, fault)
        return replace(answer, unsupported=words)
    warnings = (f"{fault} {BY_ENGINE}", *passages.warnings)
    return replace(passages, warnings=warnings, unsupported=words, planned_strategy=found.strategy)


async def _put_together(inquiry: Inquiry, found: Extraction, passages: Extraction) -> Extraction:
    quoted = "\n".join(excerpt.text for excerpt in found.excerpts if not _is_shown(excerpt, passages))
    taken = inquiry.count_tokens(found.text)
    taken += min(inquiry.count_tokens(quoted), max(limit_answer(inquiry) - taken, 0))
    left = max(inquiry.policy.max_tokens - taken, _MIN_PASSAGE_TOKENS)
    if inquiry.count_tokens(passages.text) > left:
        passages = await _ask_engine(inquiry, left) or passages
    return replace(found, passages=replace(passages, warnings=()), warnings=(*found.warnings, *passages.warnings))


def _is_shown(excerpt: Excerpt, passages: Extraction) -> bool:
    return any(each.start_byte <= excerpt.start_byte and excerpt.end_byte <= each.end_byte for each in passages.excerpts)
