"""Finds where an answer is in the stored output if its model did not say."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overspill.extraction.chunks import Span
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.provenance import Located, Quote, locate
from overspill.extraction.report import Report
from overspill.extraction.support import Claims, locate_claims
from overspill.types import Support

_MIN_VERBATIM_CHARS = 12
_MAX_VERBATIM_LINES = 100


class Grounded(Struct, frozen=True):
    located: Located
    support: Support


async def ground(inquiry: Inquiry, report: Report, located: Located, seen: Sequence[Span]) -> Grounded:
    """Citations that were checked, or the places where the answer's own words are. `seen` is what the model has read."""
    if located.excerpts or inquiry.policy.contract == "wrapped" or not (report.found and report.answer):
        return Grounded(located, "cited" if located.excerpts else "")
    places = await run_in_thread(lambda: _locate_answer(inquiry, report.answer, seen))
    if not places.excerpts:
        return Grounded(located, "")
    return Grounded(Located(places.excerpts, located.quotes, located.missing), "located")


def _locate_answer(inquiry: Inquiry, answer: str, seen: Sequence[Span]) -> Located:
    """Its lines word for word; without any that is there, its values and words."""
    reader = inquiry.document.reader
    if not Claims(answer, inquiry.query).terms:  # it says nothing but what the question says
        return Located()
    lines = dict.fromkeys(line.strip(" \t*-•`\"'") for line in answer.splitlines()[:_MAX_VERBATIM_LINES])
    whole = [Quote(line) for line in lines if len(line) >= _MIN_VERBATIM_CHARS]
    found = locate(reader, whole)
    if found.excerpts:
        return found
    return locate(reader, (), cited=locate_claims(reader, answer, inquiry.query, seen))
