"""Merge the reports of several chunks into one: in a single request where they fit, otherwise in rounds."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from msgspec import Struct

from overspill.extraction import report, wrapper
from overspill.extraction.document import ExtractionFailed
from overspill.extraction.inquiry import Inquiry
from overspill.extraction.numbered import NumberedLines
from overspill.extraction.report import ModelReport
from overspill.truncate import truncate_until

CUT = "(this output was too long and is not complete)"


class ReportPart(Struct, frozen=True):
    """One output to merge, under a title."""

    title: str
    answer: str
    quotes: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    """Of the quotes, where they are shown as numbered lines."""

    @property
    def text(self) -> str:
        if self.numbers:
            lines = [f"{number}| {quote}" for number, quote in zip(self.numbers, self.quotes, strict=True)]
            return "\n".join([self.title, self.answer, *lines])
        return f"{self.title}\n{report.render(self.answer, self.quotes)}"


async def merge(inquiry: Inquiry, parts: Sequence[ReportPart], total: int, lines: NumberedLines | None = None) -> ModelReport:
    """`lines` are the quotes of all parts, if those have numbers. Raises ExtractionFailed if any request fails."""
    room = inquiry.measure_room(inquiry.prompts.build_merge_request("", len(parts), total, wrapper.new_nonce()))
    count = len(parts)
    while True:
        groups = _group_parts(inquiry, parts, room)
        merged = await _ask_all(inquiry, groups, count, total, lines)
        if len(merged) == 1:
            return merged[0]
        parts = [_make_part(number, each, lines) for number, each in enumerate(merged, 1) if each.found]
        if not parts:
            return merged[0]


def _make_part(number: int, merged: ModelReport, lines: NumberedLines | None) -> ReportPart:
    title = f"MERGED OUTPUT {number}"
    if lines is None:
        return ReportPart(title, merged.answer, merged.quotes)
    known = [each for each in merged.numbers if lines.find([each])]
    return ReportPart(title, merged.answer, tuple(line.text for line in lines.find(known)), tuple(known))


def _group_parts(inquiry: Inquiry, parts: Sequence[ReportPart], room: int) -> list[str]:
    """No part may take more than half of the room, so that each group holds at least two and every round leaves fewer."""
    groups: list[str] = []
    taken = room + 1
    for part in parts:
        text = truncate_until(part.text, lambda shown: inquiry.count_tokens(shown) <= room // 2 - 2, f"\n{CUT}")
        needed = inquiry.count_tokens(text) + 2
        if taken + needed > room:
            groups.append(text)
            taken = needed
        else:
            groups[-1] += f"\n\n{text}"
            taken += needed
    return groups


async def _ask_all(
    inquiry: Inquiry, groups: Sequence[str], count: int, total: int, lines: NumberedLines | None
) -> list[ModelReport]:
    merged: dict[int, ModelReport] = {}
    failures: list[ExtractionFailed] = []
    limiter = anyio.CapacityLimiter(inquiry.policy.concurrency)

    async def ask(place: int, outputs: str) -> None:
        nonce = wrapper.new_nonce()
        async with limiter:
            try:
                request = inquiry.prompts.build_merge_request(outputs, count, total, nonce)
                merged[place] = await inquiry.ask(request, nonce, lines)
            except ExtractionFailed as error:
                failures.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for place, outputs in enumerate(groups):
            group.start_soon(ask, place, outputs)
    if failures:
        raise failures[0]
    return [merged[place] for place in range(len(groups))]
