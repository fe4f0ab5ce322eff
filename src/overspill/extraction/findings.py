"""The result of an extraction: an answer of bounded length, the checked quotes, and every warning you need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from overspill.extraction.chunks import Span
from overspill.extraction.document import ExtractionFailed, name_strategy
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.extraction.report import ModelReport
from overspill.extraction.support import locate_claims
from overspill.text import tokens
from overspill.text.humanize import shorten
from overspill.truncate import truncate_until
from overspill.types import Excerpt, Extraction, Support

NOT_FOUND = "No content matching query found in tool output."
NOT_FOUND_YET = "No content matching query found in the part of the tool output that was searched."
CONTENT_DESCRIBED = "What is there: {described}"
PARTIAL = "Only {searched} of {total} chunks were searched."
FAILED = "{count} could not be read: {reason}"
WAITING = "Not searched yet: {count}; ask again with the same words to continue."
UNCHECKED = "{missing} of {total} quoted passages are not in the stored output and were left out."
ALL_UNCHECKED = "The model quoted no passage that is in the stored output."
UNSUPPORTING = "{missing} of {total} passages that the model cited are not there or do not support its answer."
NO_QUOTES = "The answer quotes no passage of the stored output, so none of it could be checked."
SHORTENED = "The answer had {tokens:,} tokens and was cut to {most:,}. Ask for less at a time."
_MAX_DESCRIPTION_CHARS = 600
_CONFIDENCE_WITHOUT_QUOTES = 0.5


def describe_coverage(searched: int, total: int, failures: Mapping[int, str], waiting: int) -> Iterator[str]:
    """Yield nothing, or one warning: what was not searched, why, and what to do."""
    if searched == total:
        return
    parts = [PARTIAL.format(searched=searched, total=total)]
    if failures:
        parts.append(FAILED.format(count=len(failures), reason=next(iter(failures.values()))))
    if waiting:
        parts.append(WAITING.format(count=waiting))
    yield " ".join(parts)


def _choose_answer(inquiry: Inquiry, report: ModelReport, located: Located) -> str:
    if report.answer and inquiry.mode != "snippets":
        return report.answer
    if not located.excerpts and inquiry.policy.contract == "plain" and report.answer:
        return report.answer
    if not located.excerpts:
        raise ExtractionFailed(ALL_UNCHECKED)
    return "\n\n".join(excerpt.text for excerpt in located.excerpts)


def _rate_confidence(report: ModelReport, quotes: int, missing: int) -> float:
    """The confidence the model stated, times the share of its quotes that are really there; 0 where it found nothing."""
    if not report.found:
        return 0.0
    stated = 1.0 if report.stated_confidence is None else report.stated_confidence
    return stated * (1 - missing / quotes if quotes else _CONFIDENCE_WITHOUT_QUOTES)


def _describe_nothing_found(report: ModelReport, where: str, is_complete: bool) -> str:
    lines = [NOT_FOUND if is_complete else NOT_FOUND_YET, where]
    if described := " ".join(report.answer.split()):
        lines.append(CONTENT_DESCRIBED.format(described=shorten(described, _MAX_DESCRIPTION_CHARS)))
    return "\n".join(lines)


def cut_to_tokens(text: str, max_tokens: int, model: str | None = None) -> str:
    """As much of its beginning as has no more tokens, as `model` counts them."""
    return truncate_until(text, lambda shown: tokens.count(shown, model).tokens <= max_tokens)


async def conclude_alone(
    inquiry: Inquiry, report: ModelReport, scope: Span | None, seen: Sequence[Span], where: str
) -> Extraction:
    """For a strategy with a single report, whose quotes are looked for in `scope` first."""
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
    """With citations that were checked, or the places where the answer's own words are. `seen` is what the model has read.

    A result that `is_complete` is remembered. Raises ExtractionFailed where there is neither an answer in words nor a passage
    that is really in the document.
    """
    support: Support = "cited" if located.excerpts else ""
    document, is_plain = inquiry.document, inquiry.policy.contract == "plain"
    if not located.excerpts and is_plain and report.found and report.answer:
        places = await run_in_thread(lambda: _locate_answer(inquiry, report.answer, seen))
        if places:
            located, support = Located(places, located.quotes, located.missing), "located"
    quotes, missing = located.quotes + report.omitted_quotes, located.missing + report.omitted_quotes
    doubts: list[str] = []
    if report.found and missing:
        doubts.append((UNSUPPORTING if is_plain else UNCHECKED).format(missing=missing, total=quotes))
    elif report.found and not quotes and not is_plain:
        doubts.append(NO_QUOTES)
    text = _choose_answer(inquiry, report, located) if report.found else _describe_nothing_found(report, where, searched == total)
    most = inquiry.max_answer_tokens
    if (shown := cut_to_tokens(text, most, inquiry.model.name)) != text:
        doubts.append(SHORTENED.format(tokens=inquiry.count_tokens(text), most=most))
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
        support=support if report.found and located.excerpts else "",
    )
    if is_complete:
        inquiry.cache.results[inquiry.key] = extraction
    return extraction


def _locate_answer(inquiry: Inquiry, answer: str, seen: Sequence[Span]) -> tuple[Excerpt, ...]:
    reader = inquiry.document.reader
    return locate(reader, (), cited=locate_claims(reader, answer, inquiry.query, seen)).excerpts
