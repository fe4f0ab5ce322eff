"""From a question to an answer: by the strategy that fits, else by the next one, with a word about why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import get_args

import anyio
from msgspec.structs import replace

from overspill.errors import BadRequest
from overspill.extraction.cache import Cache
from overspill.extraction.document import (
    Document,
    Engine,
    ExtractionFailed,
    Mode,
    ModelPool,
    OnInspection,
    Policy,
    Progress,
    Strategy,
)
from overspill.extraction.fallback import extract_by_truncation, extract_with_engine
from overspill.extraction.findings import NOT_FOUND
from overspill.extraction.full_chunked import chunk_tokens, extract_full_chunked
from overspill.extraction.inquiry import Inquiry, run_in_thread, scale_for_model
from overspill.extraction.prompting import Prompts
from overspill.extraction.read_grep import extract_read_grep
from overspill.extraction.route import route
from overspill.types import Extraction

NO_QUERY = "What to extract is missing: say in words what you need from the stored output."
UNKNOWN_MODE = "There is no mode {mode!r}. Allowed are {allowed}; the nearest is {nearest!r}."
STRATEGY_FAILED = "{strategy} extraction failed: {reason}"
ENGINE_FAILED = "The built-in engine failed ({reason})."
BY_ENGINE = "The built-in engine answered instead: passages by their words, no model."
BY_ENDS = "What follows is not an extraction: the beginning and the end of the output, with the middle left out."
BY_WHOLE = "What follows is not an extraction: it is the whole output."
NO_MODEL = "No model and no engine is there to extract."
NO_ANSWER = "Nothing is set to answer in its place. The mode truncate shows the beginning and the end."
EMPTY_DOCUMENT = f"{NOT_FOUND}\nThe stored output is empty."

_MODES: tuple[str, ...] = get_args(Mode)
_NOMINAL_CHUNK = 100_000  # tokens, where no model says how large its window is


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
    looked: OnInspection | None = None,
) -> Extraction:
    """BadRequest for what cannot be asked; ExtractionFailed when neither the strategy nor any fallback could be carried out.

    Without a model, the engine answers in every mode but `truncate`.
    """
    _check(query, mode)
    if mode == "truncate":
        return await run_in_thread(lambda: extract_by_truncation(document, policy))
    if not document.size.bytes:
        return _nothing_found(document)
    if model is None:
        return await _without_model(document, query, mode, policy, engine)
    read = await run_in_thread(lambda: scale_for_model(model, document))
    prompts = Prompts(read, query, mode, policy)
    inquiry = Inquiry(read, query, mode, model, policy, cache or Cache(), prompts, progress=progress, looked=looked)
    if policy.within_secs is not None:
        inquiry = replace(inquiry, deadline=anyio.current_time() + policy.within_secs)
    try:
        if mode == "auto":
            inquiry = replace(inquiry, mode=route(read.size, policy, chunk_tokens(inquiry)))
        return inquiry.cache.results.get(inquiry.key) or await _STRATEGIES[inquiry.mode](inquiry)
    except ExtractionFailed as error:
        strategy = _strategy(inquiry.mode)
        said = STRATEGY_FAILED.format(strategy=strategy, reason=error)
        return await _fall_back(document, query, strategy, policy, engine, said)


_STRATEGIES: dict[Mode, Callable[[Inquiry], Awaitable[Extraction]]] = {
    "full-chunked": extract_full_chunked,
    "snippets": extract_full_chunked,
    "read-grep": extract_read_grep,
}


def _strategy(mode: Mode) -> Strategy:
    return "read-grep" if mode == "read-grep" else "full-chunked"


async def _without_model(document: Document, query: str, mode: Mode, policy: Policy, engine: Engine | None) -> Extraction:
    strategy = route(document.size, policy, _NOMINAL_CHUNK) if mode == "auto" else _strategy(mode)
    if engine is None:
        return await _fall_back(document, query, strategy, policy, None, NO_MODEL)
    try:
        return await _ask_engine(document, query, policy, engine, strategy)
    except ExtractionFailed as error:
        return await _fall_back(document, query, strategy, policy, None, str(error))


async def _fall_back(
    document: Document, query: str, strategy: Strategy, policy: Policy, engine: Engine | None, said: str
) -> Extraction:
    """The first fallback that works, with what went wrong before it."""
    for way in policy.fallback:
        if way == "truncate":
            shown = await run_in_thread(lambda: extract_by_truncation(document, policy))
            whole = len(shown.text) == document.size.chars
            return replace(shown, warnings=(f"{said} {BY_WHOLE if whole else BY_ENDS}",))
        if engine is not None:
            try:
                found = await _ask_engine(document, query, policy, engine, strategy)
            except ExtractionFailed as error:
                said = f"{said} {error}"
            else:
                return replace(found, warnings=(f"{said} {BY_ENGINE}", *found.warnings))
    failed = ExtractionFailed(f"{said} {NO_ANSWER}")
    failed.strategy = strategy
    raise failed


async def _ask_engine(document: Document, query: str, policy: Policy, engine: Engine, strategy: Strategy) -> Extraction:
    try:
        return await run_in_thread(lambda: extract_with_engine(document, query, policy, engine, strategy))
    except Exception as error:  # the engine is handed in, and a fault of it must not keep the next way from answering
        raise ExtractionFailed(ENGINE_FAILED.format(reason=str(error) or type(error).__name__)) from error


def _nothing_found(document: Document) -> Extraction:
    return Extraction(EMPTY_DOCUMENT, (), 0.0, "full-chunked", document.sha256, 0, 0, 0, found=False)


def _check(query: str, mode: str) -> None:
    if not query.strip():
        raise BadRequest(NO_QUERY)
    if mode not in _MODES:
        nearest = get_close_matches(mode, _MODES, n=1, cutoff=0)[0]
        raise BadRequest(UNKNOWN_MODE.format(mode=mode, allowed=", ".join(_MODES), nearest=nearest))
