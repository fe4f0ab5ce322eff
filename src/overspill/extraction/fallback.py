"""Answer without a model: what the built-in engine finds, or the beginning and the end."""

from __future__ import annotations

from msgspec.structs import replace

from overspill.extraction.chunks import Span
from overspill.extraction.document import Document, Engine, ExtractionFailed, Policy, Question, Strategy
from overspill.extraction.findings import NOT_FOUND, NOT_FOUND_YET
from overspill.extraction.inquiry import run_in_thread
from overspill.extraction.provenance import read_excerpts
from overspill.text import tokens
from overspill.truncate import Cut, read_ends, truncate_ends
from overspill.types import UNLIKELY, Extraction

BUILTIN = "builtin/lexical"

BY_ENGINE = "The built-in engine answered instead: passages by their words, no model."


async def fall_back(question: Question, planned: Strategy, reason: str) -> Extraction:
    """The first fallback that works, with the reason why it was needed."""
    document, policy = question.document, question.policy
    for fallback in policy.fallback:
        match fallback:
            case "truncate":
                shown = await run_in_thread(lambda: extract_by_truncation(document, policy))
                what = "the beginning and the end of the output, with the middle left out."
                if len(shown.text) == document.size.chars:
                    what = "it is the whole output."
                return replace(shown, warnings=(f"{reason} What follows is not an extraction: {what}",))
            case "builtin":
                if question.engine is None:
                    continue
                try:
                    found = await ask_engine(question, policy.max_tokens, planned)
                except ExtractionFailed as error:
                    reason = f"{reason} {error}"
                else:
                    return replace(found, warnings=(f"{reason} {BY_ENGINE}", *found.warnings))
    failed = ExtractionFailed(f"{reason} No fallback is configured. The mode truncate shows the beginning and the end.")
    failed.strategy = planned
    raise failed


async def ask_engine(question: Question, max_tokens: int, planned: Strategy) -> Extraction:
    if (engine := question.engine) is None:
        raise ExtractionFailed("There is no model and no engine to extract with.")
    return await run_in_thread(lambda: extract_with_engine(question.document, question.query, max_tokens, engine, planned))


def extract_with_engine(document: Document, query: str, max_tokens: int, engine: Engine, planned: Strategy) -> Extraction:
    """The engine's answer, with its excerpts read again from the stored bytes. Blocks."""
    try:
        selection = engine(document, query, max_tokens)
        places = [(Span(excerpt.start_byte, excerpt.end_byte), 0) for excerpt in selection.excerpts]
        excerpts = read_excerpts(document.reader, places)
    except Exception as error:  # the engine is passed in, and a fault in it must not keep the next fallback from answering
        raise ExtractionFailed(f"The built-in engine failed ({str(error) or type(error).__name__}).") from error
    found = bool(excerpts) or selection.matched > 0
    size = document.size.bytes
    is_whole = selection.searched_bytes >= size
    return Extraction(
        text=selection.text if found else f"{NOT_FOUND if is_whole else NOT_FOUND_YET}\n{selection.text}",
        excerpts=excerpts,
        confidence=selection.confidence,
        strategy="builtin",
        source_hash=document.sha256,
        source_size_bytes=size,
        chunks_searched=1,
        chunks_total=1,
        model=BUILTIN,
        found=found,
        is_nearest=bool(excerpts) and selection.confidence < UNLIKELY,
        warnings=() if is_whole else (f"Only the first {selection.searched_bytes:,} of {size:,} bytes were searched.",),
        planned_strategy=planned,
    )


def extract_by_truncation(document: Document, policy: Policy) -> Extraction:
    """The beginning and the end of the document. Blocks. Reads only as much of both as it may show."""
    size, reader, limit = document.size, document.reader, policy.max_tokens * tokens.CHARS_PER_TOKEN

    def cut_to(limit: int) -> Cut:
        return truncate_ends(read_ends(reader.read, reader.size, size.chars, size.lines, limit), limit)

    while tokens.has_more_than((cut := cut_to(limit)).text, policy.max_tokens) and limit > 1:
        limit = limit * 3 // 4
    return Extraction(
        text=cut.text,
        excerpts=(),
        confidence=0.0,
        strategy="truncate",
        source_hash=document.sha256,
        source_size_bytes=document.size.bytes,
        chunks_searched=0,
        chunks_total=1,
    )
