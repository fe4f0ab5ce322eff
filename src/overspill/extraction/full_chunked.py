"""A model reads every chunk, in parallel; one more request merges what it found into one answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import anyio
from msgspec import Struct

from overspill.errors import OverspillError
from overspill.extraction import chunks, wrapper
from overspill.extraction.chunks import Span
from overspill.extraction.document import ExtractionFailed
from overspill.extraction.findings import conclude, describe_coverage
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.numbered import NumberedLine, NumberedLines, split_segments
from overspill.extraction.prompting import name_chunk
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.extraction.reduce import ReportPart, merge
from overspill.extraction.report import ModelReport
from overspill.extraction.spelling import simplify
from overspill.extraction.support import choose_supporting
from overspill.models.targets import Targets
from overspill.text import tokens
from overspill.text.encoding import decode
from overspill.types import Excerpt, Extraction

_SNIPPETS_OVERLAP_PERCENT = 5
_SAFE_SHARE = 0.95
_SAFE_SHARE_WITHOUT_VOCABULARY = 0.75  # without the model's own vocabulary, our count may be a quarter too low
_TYPICAL_NONCE = "f3a9c41b7e02"
_MAP_TIME_SHARE = 0.75  # of the time there is; the rest is for merging

SEARCHED = "Searched: {searched} of {total} chunks of the output of {tool} ({bytes:,} bytes)."
NONE_READ = "None of the {total:,} chunks could be read. {reason}"
NOT_READ = "The document could not be read. {reason}"  # where it is a single chunk
OUT_OF_TIME = "There was no time to read it."
NOT_MERGED = "What the chunks gave could not be merged into one answer ({reason}); it follows chunk by chunk."
NO_TIME_TO_MERGE = "no time was left"


class ReadChunks(Struct, frozen=True):
    """How the document is cut, and what its chunks have given so far."""

    spans: tuple[Span, ...]
    reports: Mapping[int, ModelReport]
    failures: Mapping[int, str]
    """Why a chunk could not be read."""
    waiting: int
    """Chunks left for the next time."""


async def extract_full_chunked(inquiry: Inquiry) -> Extraction:
    read = await _map(inquiry, *await _plan(inquiry))
    if not read.reports:
        reason = next(iter(read.failures.values()), OUT_OF_TIME)
        total = len(read.spans)
        raise ExtractionFailed((NOT_READ if total == 1 else NONE_READ).format(total=total, reason=reason))
    found = {index: report for index, report in read.reports.items() if report.found}
    quotes = [ModelQuote(text, read.spans[index]) for index, report in found.items() for text in report.quotes]
    cited = [span for report in found.values() for span in report.cited]
    located = await _locate(inquiry, quotes, read.spans, cited)
    warnings = list(describe_coverage(len(read.reports), len(read.spans), read.failures, read.waiting))
    complete = not warnings
    if not found:
        answer = ModelReport("\n".join(dict.fromkeys(report.answer for report in read.reports.values())), found=False)
    elif len(read.spans) == 1:
        answer = found[0]
    else:
        try:
            answer, located = await _reduce(inquiry, read, found, located)
        except ExtractionFailed as error:
            complete = False
            warnings.append(NOT_MERGED.format(reason=str(error).rstrip(".")))
            named = (f"{name_chunk(i, read.spans[i])}\n{report.answer}" for i, report in found.items())
            answer = ModelReport("\n\n".join(named))
    searched, total, document = len(read.reports), len(read.spans), inquiry.document
    where = SEARCHED.format(searched=searched, total=total, tool=document.tool, bytes=document.size.bytes)
    return await conclude(
        inquiry, answer, located, read.spans, where, warnings=warnings, searched=searched, total=total, is_complete=complete
    )


def compute_chunk_tokens(inquiry: Inquiry) -> int:
    """What the prompt and the answer leave of the window; for snippets, at most half of the window."""
    # Always the same nonce: cut differently, what was read before could not be used again.
    empty = inquiry.prompts.build_chunk_request("", 0, 1000, 10, _TYPICAL_NONCE)
    room = int(inquiry.measure_room(empty) * _choose_safe_share(inquiry.model))
    return min(room, inquiry.model.context_window // 2) if inquiry.mode == "snippets" else room


def _choose_safe_share(model: Targets) -> float:
    return _SAFE_SHARE if tokens.has_vocabulary(model.name) else _SAFE_SHARE_WITHOUT_VOCABULARY


async def _plan(inquiry: Inquiry) -> tuple[tuple[Span, ...], int]:
    reader, most = inquiry.document.reader, compute_chunk_tokens(inquiry)
    overlap = _SNIPPETS_OVERLAP_PERCENT if inquiry.mode == "snippets" else inquiry.policy.overlap_percent

    def count(span: Span) -> int:
        return inquiry.count_tokens(_show(inquiry, span)[0])

    return await run_in_thread(lambda: chunks.plan(reader, most, overlap, count)), overlap


def _show(inquiry: Inquiry, span: Span) -> tuple[str, NumberedLines | None]:
    """Stored bytes as they are, or as lines that can be cited by number. Blocks."""
    data = inquiry.document.reader.read(*span)
    if not inquiry.has_numbers:
        return decode(data), None
    lines = NumberedLines([split_segments(data, span.start)])
    return lines.text, lines


async def _map(inquiry: Inquiry, spans: tuple[Span, ...], overlap: int) -> ReadChunks:
    known = {index: inquiry.cache.chunks.get((inquiry.key, span)) for index, span in enumerate(spans)}
    reports = {index: report for index, report in known.items() if report is not None}
    pending = [index for index, report in known.items() if report is None]
    asked = pending[: inquiry.policy.max_extraction_chunks]
    failures: dict[int, str] = {}
    limiter = anyio.CapacityLimiter(inquiry.policy.concurrency)

    async def read(index: int) -> None:
        async with limiter:
            try:
                report = await _read_chunk(inquiry, index, spans, overlap)
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
    return ReadChunks(spans, dict(sorted(reports.items())), failures, len(spans) - len(reports) - len(failures))


async def _read_chunk(inquiry: Inquiry, index: int, spans: Sequence[Span], overlap: int) -> ModelReport:
    text, lines = await run_in_thread(lambda: _show(inquiry, spans[index]))
    nonce = wrapper.new_nonce()
    return await inquiry.ask(inquiry.prompts.build_chunk_request(text, index, len(spans), overlap, nonce), nonce, lines)


async def _reduce(
    inquiry: Inquiry, read: ReadChunks, found: Mapping[int, ModelReport], located: Located
) -> tuple[ModelReport, Located]:
    """Merge from checked quotes only. They stay the citations where the merged report quotes nothing that is in the document."""
    lines = NumberedLines([_list_excerpts(located)]) if inquiry.has_numbers else None
    numbers = {line.span: number for number, line in enumerate(lines.lines, 1)} if lines else {}
    parts: list[ReportPart] = []
    for index, report in found.items():
        own = [each for each in located.excerpts if each.chunk_index == index]
        numbered = [numbers[span] for each in own if (span := Span(each.start_byte, each.end_byte)) in numbers]
        parts.append(
            ReportPart(name_chunk(index, read.spans[index]), report.answer, tuple(each.text for each in own), tuple(numbered))
        )
    answer: ModelReport | None = None
    with anyio.CancelScope(deadline=inquiry.deadline):
        answer = await merge(inquiry, parts, len(read.spans), lines)
    if answer is None:
        raise ExtractionFailed(NO_TIME_TO_MERGE)
    merged = await _locate(inquiry, list(_scope_quotes(answer.quotes, located)), read.spans, answer.cited)
    if not merged.excerpts and answer.found:
        kept = _keep_supporting(inquiry, answer, located)
        merged = Located(kept, located.quotes + merged.quotes, located.missing + merged.missing)
    return answer, merged


def _list_excerpts(located: Located) -> list[NumberedLine]:
    return [NumberedLine(Span(each.start_byte, each.end_byte), each.text) for each in located.excerpts]


def _keep_supporting(inquiry: Inquiry, answer: ModelReport, located: Located) -> tuple[Excerpt, ...]:
    """What the chunks cited, for a merged answer that cites nothing: in the plain contract, only what still supports it."""
    if inquiry.policy.contract == "wrapped" or not answer.answer:
        return located.excerpts
    spans = {line.span for line in choose_supporting(_list_excerpts(located), answer.answer, inquiry.query)}
    return tuple(each for each in located.excerpts if Span(each.start_byte, each.end_byte) in spans)


def _scope_quotes(quotes: Iterable[str], located: Located) -> Iterable[ModelQuote]:
    known = [(simplify(line.text), line.span) for line in _list_excerpts(located)]
    for text in quotes:
        bare = simplify(text)
        yield ModelQuote(text, next((span for shown, span in known if bare in shown), None))


async def _locate(inquiry: Inquiry, quotes: Sequence[ModelQuote], spans: Sequence[Span], cited: Sequence[Span]) -> Located:
    return await run_in_thread(lambda: locate(inquiry.document.reader, quotes, spans, cited))
