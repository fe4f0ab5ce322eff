"""Makes a report the result of an extraction, and finds where an answer is in the stored output if its model did not say."""

from __future__ import annotations

from collections.abc import Sequence

from overspill.extraction.chunks import Span
from overspill.extraction.findings import build_extraction
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.extraction.report import ModelReport
from overspill.extraction.support import Claims, locate_claims
from overspill.types import Extraction, Support

_MIN_VERBATIM_CHARS = 12
_MAX_VERBATIM_LINES = 100


async def conclude(
    inquiry: Inquiry,
    report: ModelReport,
    located: Located,
    seen: Sequence[Span],
    searched_where: str,
    *,
    warnings: Sequence[str] = (),
    searched: int = 1,
    total: int = 1,
    is_complete: bool = True,
) -> Extraction:
    """With citations that were checked, or the places where the answer's own words are. `seen` is what the model has read.

    A result that `is_complete` is remembered.
    """
    support: Support = "cited" if located.excerpts else ""
    if not located.excerpts and inquiry.policy.contract == "plain" and report.found and report.answer:
        places = await run_in_thread(lambda: _locate_answer(inquiry, report.answer, seen))
        if places.excerpts:
            located, support = Located(places.excerpts, located.quotes, located.missing), "located"
    extraction = build_extraction(inquiry, report, located, warnings, searched_where, searched, total, support)
    if is_complete:
        inquiry.cache.results[inquiry.key] = extraction
    return extraction


def _locate_answer(inquiry: Inquiry, answer: str, seen: Sequence[Span]) -> Located:
    """Its lines word for word; without any that is there, its values and words."""
    reader = inquiry.document.reader
    if not Claims(answer, inquiry.query).terms:  # it says nothing but what the question says
        return Located()
    lines = dict.fromkeys(line.strip(" \t*-•`\"'") for line in answer.splitlines()[:_MAX_VERBATIM_LINES])
    whole = [ModelQuote(line) for line in lines if len(line) >= _MIN_VERBATIM_CHARS]
    found = locate(reader, whole)
    if found.excerpts:
        return found
    return locate(reader, (), cited=locate_claims(reader, answer, inquiry.query, seen))
