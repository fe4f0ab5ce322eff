"""Answer a question by the strategy that fits, or by a fallback, with the reason."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Literal, assert_never, get_args

import anyio
from msgspec.structs import replace

from overspill.errors import BadRequest
from overspill.extraction.cache import Cache
from overspill.extraction.document import (
    Document,
    Engine,
    ExtractionFailed,
    Mode,
    ModelMode,
    ModelPool,
    OnInspection,
    Policy,
    Progress,
    Strategy,
)
from overspill.extraction.fallback import extract_by_truncation, extract_with_engine
from overspill.extraction.findings import NOT_FOUND
from overspill.extraction.full_chunked import compute_chunk_tokens
from overspill.extraction.inquiry import Inquiry, run_in_thread, scale_for_model
from overspill.extraction.prompting import Prompts
from overspill.extraction.strategies import choose_mode, find_strategy
from overspill.types import Extraction

NO_QUERY = "What to extract is missing: say in words what you need from the stored output."
UNKNOWN_MODE = "There is no mode {mode!r}. Allowed are {allowed}; the nearest is {nearest!r}."
STRATEGY_FAILED = "{strategy} extraction failed: {reason}"
ENGINE_FAILED = "The built-in engine failed ({reason})."
BY_ENGINE = "The built-in engine answered instead: passages by their words, no model."
BY_ENDS = "What follows is not an extraction: the beginning and the end of the output, with the middle left out."
BY_WHOLE = "What follows is not an extraction: it is the whole output."
NO_MODEL = "There is no model and no engine to extract with."
NO_ANSWER = "No fallback is configured. The mode truncate shows the beginning and the end."
EMPTY_DOCUMENT = f"{NOT_FOUND}\nThe stored output is empty."

_MODES: tuple[str, ...] = get_args(Mode)
_NOMINAL_CHUNK_TOKENS = 100_000  # where no model says how large its window is


async def extract(
    document: Document,
    query: str,
    *,
    mode: Mode = "auto",
    model: ModelPool | None = None,
    policy: Policy = Policy(),  # noqa: B008  # frozen
    cache: Cache | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    on_inspection: OnInspection | None = None,
) -> Extraction:
    """Raises BadRequest for bad input, and ExtractionFailed when neither the strategy nor a fallback could answer.

    Without a model, the engine answers in every mode but `truncate`.
    """
    _check(query, mode)
    if mode == "truncate":
        return await run_in_thread(lambda: extract_by_truncation(document, policy))
    if not document.size.bytes:
        return _nothing_found(document)
    if model is None:
        return await _without_model(document, query, mode, policy, engine)
    measured = await run_in_thread(lambda: scale_for_model(model, document))
    first_mode: ModelMode = "full-chunked" if mode == "auto" else mode
    inquiry = Inquiry(
        measured,
        query,
        first_mode,
        model,
        policy,
        cache or Cache(),
        Prompts(measured, query, first_mode, policy),
        deadline=math.inf if policy.within_secs is None else anyio.current_time() + policy.within_secs,
        progress=progress,
        on_inspection=on_inspection,
    )
    try:
        if mode == "auto":
            inquiry = replace(inquiry, mode=choose_mode(measured.size, policy, compute_chunk_tokens(inquiry)))
        return inquiry.cache.results.get(inquiry.key) or await find_strategy(inquiry.mode).extract(inquiry)
    except ExtractionFailed as error:
        strategy = find_strategy(inquiry.mode).name
        reason = STRATEGY_FAILED.format(strategy=strategy, reason=error)
        return await _fall_back(document, query, strategy, policy, engine, reason)


async def _without_model(
    document: Document, query: str, mode: Literal["auto"] | ModelMode, policy: Policy, engine: Engine | None
) -> Extraction:
    planned = find_strategy(choose_mode(document.size, policy, _NOMINAL_CHUNK_TOKENS) if mode == "auto" else mode).name
    if engine is None:
        return await _fall_back(document, query, planned, policy, None, NO_MODEL)
    try:
        return await _ask_engine(document, query, policy, engine, planned)
    except ExtractionFailed as error:
        return await _fall_back(document, query, planned, policy, None, str(error))


async def _fall_back(
    document: Document, query: str, planned: Strategy, policy: Policy, engine: Engine | None, reason: str
) -> Extraction:
    """The first fallback that works, with the reason why it was needed."""
    for fallback in policy.fallback:
        match fallback:
            case "truncate":
                shown = await run_in_thread(lambda: extract_by_truncation(document, policy))
                is_whole = len(shown.text) == document.size.chars
                return replace(shown, warnings=(f"{reason} {BY_WHOLE if is_whole else BY_ENDS}",))
            case "builtin":
                if engine is None:
                    continue
                try:
                    found = await _ask_engine(document, query, policy, engine, planned)
                except ExtractionFailed as error:
                    reason = f"{reason} {error}"
                else:
                    return replace(found, warnings=(f"{reason} {BY_ENGINE}", *found.warnings))
            case _:
                assert_never(fallback)
    failed = ExtractionFailed(f"{reason} {NO_ANSWER}")
    failed.strategy = planned
    raise failed


async def _ask_engine(document: Document, query: str, policy: Policy, engine: Engine, planned: Strategy) -> Extraction:
    try:
        return await run_in_thread(lambda: extract_with_engine(document, query, policy, engine, planned))
    except Exception as error:  # the engine is handed in, and a fault of it must not keep the next fallback from answering
        raise ExtractionFailed(ENGINE_FAILED.format(reason=str(error) or type(error).__name__)) from error


def _nothing_found(document: Document) -> Extraction:
    return Extraction(EMPTY_DOCUMENT, (), 0.0, "full-chunked", document.sha256, 0, 0, 0, found=False)


def _check(query: str, mode: str) -> None:
    if not query.strip():
        raise BadRequest(NO_QUERY)
    if mode not in _MODES:
        nearest = get_close_matches(mode, _MODES, n=1, cutoff=0)[0]
        raise BadRequest(UNKNOWN_MODE.format(mode=mode, allowed=", ".join(_MODES), nearest=nearest))
