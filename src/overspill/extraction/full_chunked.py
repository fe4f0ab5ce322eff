"""A model reads every chunk, in parallel. Its findings are then merged into one answer, in rounds if they do not all fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio

from overspill.errors import OverspillError
from overspill.extraction import chunks, wrapper
from overspill.extraction.chunks import NumberedLine, NumberedLines, Span, split_segments
from overspill.extraction.document import ExtractionFailed
from overspill.extraction.findings import conclude
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.prompting import name_chunk
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.extraction.report import ModelReport, render
from overspill.extraction.spelling import simplify
from overspill.extraction.support import choose_supporting
from overspill.models.conversation import run_in_parallel
from overspill.text import tokens
from overspill.text.encoding import decode
from overspill.truncate import truncate_until
from overspill.types import Extraction

_SNIPPETS_OVERLAP_PERCENT = 5
_SAFE_SHARE = 0.95
_SAFE_SHARE_WITHOUT_VOCABULARY = 0.75  # without the model's own vocabulary, our count may be a quarter too low
_TYPICAL_NONCE = "f3a9c41b7e02"
_MAP_TIME_SHARE = 0.75  # of the available time; merging gets the remaining time
_CUT = "(this output was too long and is not complete)"


async def extract_full_chunked(inquiry: Inquiry) -> Extraction:
    spans, overlap = await _plan(inquiry)
    reports, failures = await _map(inquiry, spans, overlap)
    searched, total, document = len(reports), len(spans), inquiry.document
    if not reports:
        reason = next(iter(failures.values()), "There was no time to read it.")
        what = "The document could not" if total == 1 else f"None of the {total:,} chunks could"
        raise ExtractionFailed(f"{what} be read. {reason}")
    found = {index: report for index, report in reports.items() if report.found}
    quotes = [ModelQuote(text, spans[index]) for index, report in found.items() for text in report.quotes]
    cited = [span for report in found.values() for span in report.cited]
    located = await run_in_thread(lambda: locate(document.reader, quotes, spans, cited))
    warnings: list[str] = []
    is_complete = searched == total
    if not is_complete:
        parts = [f"Only {searched} of {total} chunks were searched."]
        if failures:
            parts.append(f"{len(failures)} could not be read: {next(iter(failures.values()))}")
        if waiting := total - searched - len(failures):
            parts.append(f"Not searched yet: {waiting}; ask again with the same words to continue.")
        warnings.append(" ".join(parts))
    if not found:
        answer = ModelReport("\n".join(dict.fromkeys(report.answer for report in reports.values())), found=False)
    elif total == 1:
        answer = found[0]
    else:
        try:
            answer, located = await _reduce(inquiry, spans, found, located)
        except ExtractionFailed as error:
            is_complete, reason = False, str(error).rstrip(".")
            warnings.append(f"What the chunks gave could not be merged into one answer ({reason}); it follows chunk by chunk.")
            named = (f"{name_chunk(index, spans[index])}\n{report.answer}" for index, report in found.items())
            answer = ModelReport("\n\n".join(named))
    where = f"Searched: {searched} of {total} chunks of the output of {document.tool} ({document.size.bytes:,} bytes)."
    return await conclude(
        inquiry, answer, located, spans, where, warnings=warnings, searched=searched, total=total, is_complete=is_complete
    )


def compute_chunk_tokens(inquiry: Inquiry) -> int:
    """How much of the window the prompt and the answer leave; for snippets, at most half of the window."""
    # Always the same nonce: with another, chunks could be cut differently, and earlier results could not be reused.
    empty = inquiry.prompts.build_chunk_request("", 0, 1000, 10, _TYPICAL_NONCE)
    share = _SAFE_SHARE if tokens.has_vocabulary(inquiry.model.name) else _SAFE_SHARE_WITHOUT_VOCABULARY
    room = int(inquiry.measure_room(empty) * share)
    return min(room, inquiry.model.context_window // 2) if inquiry.mode == "snippets" else room


async def _plan(inquiry: Inquiry) -> tuple[tuple[Span, ...], int]:
    """The chunks, and by how many percent they overlap."""
    reader, most = inquiry.document.reader, compute_chunk_tokens(inquiry)
    overlap = _SNIPPETS_OVERLAP_PERCENT if inquiry.mode == "snippets" else inquiry.policy.overlap_percent

    def count(span: Span) -> int:
        return inquiry.count_tokens(_show(inquiry, span)[0])

    return await run_in_thread(lambda: chunks.plan(reader, most, overlap, count)), overlap


def _show(inquiry: Inquiry, span: Span) -> tuple[str, NumberedLines | None]:
    """The text of a chunk for the model: unchanged, or as lines that can be cited by number. Blocks."""
    data = inquiry.document.reader.read(*span)
    if not inquiry.is_plain:
        return decode(data), None
    lines = NumberedLines([split_segments(data, span.start)])
    return lines.text, lines


async def _map(inquiry: Inquiry, spans: tuple[Span, ...], overlap: int) -> tuple[dict[int, ModelReport], dict[int, str]]:
    """The findings of the chunks so far, and why some could not be read. Those not read yet are left for the next question."""
    known = {index: inquiry.cache.chunks.get((inquiry.key, span)) for index, span in enumerate(spans)}
    reports = {index: report for index, report in known.items() if report is not None}
    asked = [index for index, report in known.items() if report is None][: inquiry.policy.max_extraction_chunks]
    failures: dict[int, str] = {}
    limiter = anyio.CapacityLimiter(inquiry.policy.concurrency)

    async def read(index: int) -> None:
        async with limiter:
            try:
                text, lines = await run_in_thread(lambda: _show(inquiry, spans[index]))
                nonce = wrapper.new_nonce()
                request = inquiry.prompts.build_chunk_request(text, index, len(spans), overlap, nonce)
                report = await inquiry.ask(request, nonce, lines)
            except OverspillError as error:
                failures[index] = str(error)
            else:
                reports[index] = inquiry.cache.chunks[inquiry.key, spans[index]] = report
        if inquiry.progress:
            inquiry.progress(len(reports) + len(failures), len(spans))

    now = anyio.current_time()
    with anyio.CancelScope(deadline=now + (inquiry.deadline - now) * _MAP_TIME_SHARE):
        async with anyio.create_task_group() as group:
            for index in asked:
                group.start_soon(read, index)
    return dict(sorted(reports.items())), failures


async def _reduce(
    inquiry: Inquiry, spans: Sequence[Span], found: Mapping[int, ModelReport], located: Located
) -> tuple[ModelReport, Located]:
    """Merge reports with checked quotes only. These stay the citations if the merged report has no quote that is found; in the
    plain contract, only those that still support the merged answer."""
    shown = [NumberedLine(Span(each.start_byte, each.end_byte), each.text) for each in located.excerpts]
    lines = NumberedLines([shown]) if inquiry.is_plain else None
    parts: list[str] = []
    for index, report in found.items():
        own = {number: each.text for number, each in enumerate(located.excerpts, 1) if each.chunk_index == index}
        parts.append(_write_part(name_chunk(index, spans[index]), report.answer, own, has_numbers=lines is not None))
    answer: ModelReport | None = None
    with anyio.CancelScope(deadline=inquiry.deadline):
        answer = await _merge(inquiry, parts, len(spans), lines)
    if answer is None:
        raise ExtractionFailed("no time was left")
    known = [(simplify(line.text), line.span) for line in shown]
    quotes = [
        ModelQuote(text, next((span for spelled, span in known if bare in spelled), None))
        for text, bare in ((text, simplify(text)) for text in answer.quotes)
    ]
    cited = answer.cited
    merged = await run_in_thread(lambda: locate(inquiry.document.reader, quotes, spans, cited))
    if not merged.excerpts and answer.found:
        kept = located.excerpts
        if inquiry.is_plain and answer.answer:
            supporting = {line.span for line in choose_supporting(shown, answer.answer, inquiry.query)}
            kept = tuple(each for each in kept if Span(each.start_byte, each.end_byte) in supporting)
        merged = Located(kept, located.quotes + merged.quotes, located.missing + merged.missing)
    return answer, merged


def _write_part(title: str, answer: str, quotes: Mapping[int, str], *, has_numbers: bool) -> str:
    """One output to merge, under a title, with its quotes by their numbers."""
    if not has_numbers:
        return f"{title}\n{render(answer, tuple(quotes.values()))}"
    return "\n".join([title, answer, *(f"{number}| {quote}" for number, quote in quotes.items())])


async def _merge(inquiry: Inquiry, parts: Sequence[str], total: int, lines: NumberedLines | None) -> ModelReport:
    """Merge parts into one report. `lines`: their quotes, if these have numbers. Raises ExtractionFailed if any request fails."""
    room = inquiry.measure_room(inquiry.prompts.build_merge_request("", len(parts), total, wrapper.new_nonce()))
    count = len(parts)
    while True:
        merged = await _ask_all(inquiry, _group_parts(inquiry, parts, room), count, total, lines)
        if len(merged) == 1 or not any(each.found for each in merged):
            return merged[0]
        parts = []
        for number, each in enumerate(merged, 1):
            if each.found:
                own = dict(enumerate(each.quotes))
                if lines is not None:
                    own = {at: lines.lines[at - 1].text for at in each.numbers if 1 <= at <= len(lines.lines)}
                parts.append(_write_part(f"MERGED OUTPUT {number}", each.answer, own, has_numbers=lines is not None))


def _group_parts(inquiry: Inquiry, parts: Sequence[str], room: int) -> list[str]:
    """Group parts into requests. None may take more than half of the room: groups of at least two leave fewer every round."""
    groups: list[str] = []
    taken = room + 1
    for part in parts:
        text = truncate_until(part, lambda shown: inquiry.count_tokens(shown) <= room // 2 - 2, f"\n{_CUT}")
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
    limiter = anyio.CapacityLimiter(inquiry.policy.concurrency)

    async def ask(outputs: str) -> ModelReport:
        nonce = wrapper.new_nonce()
        async with limiter:
            return await inquiry.ask(inquiry.prompts.build_merge_request(outputs, count, total, nonce), nonce, lines)

    return await run_in_parallel(ask, groups)
