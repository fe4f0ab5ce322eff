"""Answer a question by the strategy that fits, or by a fallback, with the reason."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Literal, get_args

import anyio
from msgspec.structs import replace

from overspill.errors import BadRequest
from overspill.extraction.document import (
    Document,
    Engine,
    ExtractionFailed,
    Mode,
    ModelMode,
    OnInspection,
    Policy,
    Progress,
    Question,
    name_strategy,
)
from overspill.extraction.fallback import ask_engine, extract_by_truncation, fall_back
from overspill.extraction.findings import NOT_FOUND
from overspill.extraction.full_chunked import compute_chunk_tokens
from overspill.extraction.inquiry import Cache, Inquiry, run_in_thread, scale_for_model
from overspill.extraction.prompting import PlainPrompts, WrappedPrompts
from overspill.extraction.strategies import choose_mode, extract_beside_engine, extract_by_mode
from overspill.models.targets import Targets
from overspill.types import Extraction

_MODES: tuple[str, ...] = get_args(Mode)
_EMPTY = f"{NOT_FOUND}\nThe stored output is empty."
_NOMINAL_CHUNK_TOKENS = 100_000  # used if no model says how large its window is


async def extract(
    document: Document,
    query: str,
    *,
    mode: Mode = "auto",
    model: Targets | None = None,
    policy: Policy = Policy(),  # noqa: B008  # frozen
    cache: Cache | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    on_inspection: OnInspection | None = None,
) -> Extraction:
    """Answer a question. Raises BadRequest for bad input, and ExtractionFailed if neither strategy nor fallback could answer.

    Without a model, the engine answers in every mode but `truncate`.
    """
    _check(query, mode)
    if mode == "truncate":
        return await run_in_thread(lambda: extract_by_truncation(document, policy))
    if not document.size.bytes:
        return Extraction(_EMPTY, (), 0.0, "full-chunked", document.sha256, 0, 0, 0, found=False)
    if model is None:
        return await _without_model(Question(document, query, policy, engine), mode)
    measured = await run_in_thread(lambda: scale_for_model(model, document))
    first_mode: ModelMode = "full-chunked" if mode == "auto" else mode
    is_plain = policy.contract == "plain"
    prompts = (PlainPrompts if is_plain or mode == "focused" else WrappedPrompts)(measured, query, first_mode, policy)
    deadline = math.inf if policy.answer_within_secs is None else anyio.current_time() + policy.answer_within_secs
    cache, most = cache or Cache(), policy.max_tokens
    inquiry = Inquiry(measured, query, policy, engine, first_mode, model, cache, prompts, deadline, progress, on_inspection, most)
    try:
        if is_plain:
            return await extract_beside_engine(inquiry, mode)
        if mode == "auto":
            inquiry = replace(inquiry, mode=choose_mode(measured.size, policy, compute_chunk_tokens(inquiry)))
        return await extract_by_mode(inquiry)
    except ExtractionFailed as error:
        strategy = error.strategy or name_strategy(first_mode)
        return await fall_back(inquiry, strategy, f"{strategy} extraction failed: {error}")


async def _without_model(question: Question, mode: Literal["auto"] | ModelMode) -> Extraction:
    document, policy = question.document, question.policy
    planned = name_strategy(choose_mode(document.size, policy, _NOMINAL_CHUNK_TOKENS) if mode == "auto" else mode)
    try:
        return await ask_engine(question, policy.max_tokens, planned)
    except ExtractionFailed as error:
        return await fall_back(replace(question, engine=None), planned, str(error))


def _check(query: str, mode: str) -> None:
    if not query.strip():
        raise BadRequest("What to extract is missing: say in words what you need from the stored output.")
    if mode not in _MODES:
        nearest = get_close_matches(mode, _MODES, n=1, cutoff=0)[0]
        raise BadRequest(f"There is no mode {mode!r}. Allowed are {', '.join(_MODES)}; the nearest is {nearest!r}.")
