"""The result of an extraction: an answer of bounded length, the checked quotes, and every warning you need."""

from __future__ import annotations

from collections.abc import Sequence

from overspill.extraction.chunks import Span
from overspill.extraction.document import ExtractionFailed, name_strategy
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.extraction.report import ModelReport
from overspill.extraction.support import locate_claims
from overspill.text import tokens
from overspill.text.humanize import shorten
from overspill.truncate import truncate_until
from overspill.types import Extraction, Support

NOT_FOUND = "No content matching query found in tool output."
NOT_FOUND_YET = "No content matching query found in the part of the tool output that was searched."
_MAX_DESCRIPTION_CHARS = 600
_CONFIDENCE_WITHOUT_QUOTES = 0.5


def cut_to_tokens(text: str, max_tokens: int, model: str | None = None) -> str:
    """The longest beginning that has at most `max_tokens` tokens, as `model` counts them."""
    return truncate_until(text, lambda shown: tokens.count(shown, model).tokens <= max_tokens)


async def conclude_alone(
    inquiry: Inquiry, report: ModelReport, scope: Span | None, seen: Sequence[Span], where: str
) -> Extraction:
    """The result of a strategy with a single report. Searches `scope` for the report's quotes first."""
    quotes = [ModelQuote(text, scope) for text in report.quotes]
    located = await run_in_thread(lambda: locate(inquiry.document.reader, quotes, cited=report.cited))
    return await conclude(inquiry, report, located, seen, where)


async def conclude(
    inquiry: Inquiry,
    report: ModelReport,
    located: Located,
    seen: Sequence[Span],
    where: str,
    *,
    warnings: Sequence[str] = (),
    searched: int = 1,
    total: int = 1,
    is_complete: bool = True,
) -> Extraction:
    """The result, with checked citations, or the places where the answer's own words occur. `seen` is what the model has read.

    A result that `is_complete` is cached. Raises ExtractionFailed if there is neither an answer in words nor a passage that is
    really in the document.
    """
    support: Support = "cited" if located.excerpts else ""
    document, is_plain = inquiry.document, inquiry.is_plain
    if not located.excerpts and is_plain and report.found and report.answer:
        reader, said = document.reader, report.answer
        excerpts = await run_in_thread(
            lambda: locate(reader, (), cited=locate_claims(reader, said, inquiry.query, seen)).excerpts
        )
        if excerpts:
            located, support = Located(excerpts, located.quotes, located.missing), "located"
    quotes, missing = located.quotes + report.omitted_quotes, located.missing + report.omitted_quotes
    text = _choose_answer(inquiry, report, located) if report.found else _describe_nothing_found(report, where, searched == total)
    shown, most = cut_to_tokens(text, inquiry.max_answer_tokens, inquiry.model.name), inquiry.max_answer_tokens
    doubts = _find_doubts(quotes, missing, is_plain=is_plain) if report.found else []
    if shown != text:
        doubts.append(f"The answer had {inquiry.count_tokens(text):,} tokens and was cut to {most:,}. Ask for less at a time.")
    extraction = Extraction(
        text=shown,
        excerpts=located.excerpts if report.found else (),
        confidence=_rate_confidence(report, quotes, missing if support == "cited" else quotes) * searched / total,
        strategy=name_strategy(inquiry.mode),
        source_hash=document.sha256,
        source_size_bytes=document.size.bytes,
        chunks_searched=searched,
        chunks_total=total,
        model=report.model or inquiry.model.name,
        found=report.found,
        warnings=(*warnings, *doubts),
        support=support if report.found else "",
    )
    if is_complete:
        inquiry.cache.results[inquiry.key] = extraction
    return extraction


def _find_doubts(quotes: int, missing: int, *, is_plain: bool) -> list[str]:
    if missing and is_plain:
        return [f"{missing} of {quotes} passages that the model cited are not there or do not support its answer."]
    if missing:
        return [f"{missing} of {quotes} quoted passages are not in the stored output and were left out."]
    if not quotes and not is_plain:
        return ["The answer quotes no passage of the stored output, so none of it could be checked."]
    return []


def _choose_answer(inquiry: Inquiry, report: ModelReport, located: Located) -> str:
    if report.answer and (inquiry.mode != "snippets" or (inquiry.is_plain and not located.excerpts)):
        return report.answer
    if not located.excerpts:
        raise ExtractionFailed("The model quoted no passage that is in the stored output.")
    return "\n\n".join(excerpt.text for excerpt in located.excerpts)


def _rate_confidence(report: ModelReport, quotes: int, missing: int) -> float:
    """The confidence the model stated, times the share of its quotes that are really there; 0 if it found nothing."""
    if not report.found:
        return 0.0
    stated = 1.0 if report.stated_confidence is None else report.stated_confidence
    return stated * (1 - missing / quotes if quotes else _CONFIDENCE_WITHOUT_QUOTES)


def _describe_nothing_found(report: ModelReport, where: str, is_complete: bool) -> str:
    described = shorten(" ".join(report.answer.split()), _MAX_DESCRIPTION_CHARS)
    return "\n".join(
        [NOT_FOUND if is_complete else NOT_FOUND_YET, where, *([f"What is there: {described}"] if described else [])]
    )
