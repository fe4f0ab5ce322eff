"""A model reads only the passages that the engine selects: one short request, however long the document is."""

from __future__ import annotations

from overspill.extraction import wrapper
from overspill.extraction.chunks import Span
from overspill.extraction.document import ExtractionFailed
from overspill.extraction.grounding import conclude
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.numbered import NumberedLines, align_lines
from overspill.extraction.plain_prompting import PlainPrompts
from overspill.extraction.provenance import ModelQuote, locate
from overspill.types import Extraction

SEARCHED = "Searched: the passages of the output of {tool} ({bytes:,} bytes) that the built-in engine found."
NO_ENGINE = "There is no engine to select passages with."
NO_PASSAGES = "The built-in engine found no passages to read."
_WINDOW_SHARE = 0.5
"""Of what the question leaves of the window."""


async def extract_focused(inquiry: Inquiry) -> Extraction:
    document = inquiry.document
    prompts = PlainPrompts(document, inquiry.query, inquiry.mode, inquiry.policy)
    nonce = wrapper.new_nonce()
    room = int(inquiry.measure_room(prompts.build_focused_request("", nonce)) * _WINDOW_SHARE)
    lines = await run_in_thread(lambda: _number_passages(inquiry, min(inquiry.policy.focus_tokens, room)))
    report = await inquiry.ask(prompts.build_focused_request(lines.text, nonce), nonce, lines)
    seen = [line.span for line in lines.lines]
    whole = Span(min(span.start for span in seen), max(span.end for span in seen))
    quotes = [ModelQuote(text, whole) for text in report.quotes]
    located = await run_in_thread(lambda: locate(document.reader, quotes, cited=report.cited))
    return await conclude(inquiry, report, located, seen, SEARCHED.format(tool=document.tool, bytes=document.size.bytes))


def _number_passages(inquiry: Inquiry, max_tokens: int) -> NumberedLines:
    """As many as fit with their numbers, which take room too. Blocks."""
    if inquiry.engine is None:
        raise ExtractionFailed(NO_ENGINE)
    budget, read = max_tokens, inquiry.document.reader.read
    while True:
        passages = inquiry.engine(inquiry.document, inquiry.query, budget).excerpts
        groups = [align_lines(each.shown, read(each.start_byte, each.end_byte), each.start_byte) for each in passages]
        lines = NumberedLines(groups, has_numbers=inquiry.policy.citing == "numbers")
        if not lines.lines:
            raise ExtractionFailed(NO_PASSAGES)
        excess = inquiry.count_tokens(lines.text) - max_tokens
        if excess <= 0 or budget <= 1:
            return lines
        budget = max(min(budget - excess, budget * 9 // 10), 1)
