"""The strategies that ask a model. To add one, write its file, name its mode in `ModelMode`, and register it here.

The type checker complains about a mode without a strategy.
"""

from __future__ import annotations

import re
from typing import assert_never

from overspill.extraction import chunks, wrapper
from overspill.extraction.chunks import Span
from overspill.extraction.document import ExtractionFailed, ModelMode, Policy, name_strategy
from overspill.extraction.findings import conclude_alone
from overspill.extraction.full_chunked import extract_full_chunked
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.numbered import NumberedLines, align_lines
from overspill.extraction.prompting import PlainPrompts
from overspill.extraction.read_grep import extract_read_grep
from overspill.types import LIKELY, Extraction, Size

_WHOLE = re.compile(
    r"\b(?:summar(?:y|ies|i[sz](?:e[ds]?|ing|ations?))|sum(?:s|med|ming)? up|recap|synopsis|tl;?dr|in a nutshell|"
    r"(?:key|main) (?:points|takeaways)|overview|outline|gist|all|every|each|list|enumerate|how many|how often|count|"
    r"number of|total|most common|most frequent|distinct|unique|compare|everything|complete|entire|whole)\b",
    re.IGNORECASE,
)
_MAX_QUERY_CHARS = 10_000


def choose_mode(size: Size, policy: Policy, chunk_tokens: int) -> ModelMode:
    """The documents' rule: read a few chunks whole, and long lines, where line numbers and patterns do not help."""
    few = chunks.count(size.tokens, chunk_tokens, policy.overlap_percent) <= policy.max_chunks
    return "full-chunked" if few or size.average_line_bytes > policy.avg_line_bytes_threshold else "read-grep"


def choose_plain_mode(
    size: Size, policy: Policy, chunk_tokens: int, query: str, confidence: float | None, *, is_model_large: bool
) -> ModelMode:
    """`confidence` is the engine's, None if it found no passages. `is_model_large`: known to read long texts well.

    1. A question about the whole goes to a large model chunk by chunk, if one extraction can read all chunks.
    2. Where the engine is confident, or the model is small or unknown, the model reads the engine's passages.
    3. The rest follows the documents' rule.
    """
    needed = chunks.count(size.tokens, chunk_tokens, policy.overlap_percent)
    if is_model_large and needs_whole(query) and needed <= policy.max_extraction_chunks:
        return "full-chunked"
    if confidence is not None and (confidence >= LIKELY or not is_model_large):
        return "focused"
    return choose_mode(size, policy, chunk_tokens)


def needs_whole(query: str) -> bool:
    """Whether no selection of passages can answer it: a summary, a list of all, a count."""
    return _WHOLE.search(query[:_MAX_QUERY_CHARS]) is not None


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
    return await conclude_alone(inquiry, report, whole, seen, SEARCHED.format(tool=document.tool, bytes=document.size.bytes))


def _number_passages(inquiry: Inquiry, max_tokens: int) -> NumberedLines:
    """As many as fit with their numbers, which take room too. Blocks."""
    if inquiry.engine is None:
        raise ExtractionFailed(NO_ENGINE)
    budget, read = max_tokens, inquiry.document.reader.read
    while True:
        passages = inquiry.engine(inquiry.document, inquiry.query, budget).excerpts
        groups = [align_lines(each.shown, read(each.start_byte, each.end_byte), each.start_byte) for each in passages]
        lines = NumberedLines(groups)
        if not lines.lines:
            raise ExtractionFailed(NO_PASSAGES)
        excess = inquiry.count_tokens(lines.text) - max_tokens
        if excess <= 0 or budget <= 1:
            return lines
        budget = max(min(budget - excess, budget * 9 // 10), 1)


async def extract_by_mode(inquiry: Inquiry) -> Extraction:
    """What is known from an earlier question, or what the strategy of the mode finds."""
    if known := inquiry.cache.results.get(inquiry.key):
        return known
    try:
        match inquiry.mode:
            case "focused":
                return await extract_focused(inquiry)
            case "full-chunked" | "snippets":
                return await extract_full_chunked(inquiry)
            case "read-grep":
                return await extract_read_grep(inquiry)
            case _:
                assert_never(inquiry.mode)
    except ExtractionFailed as error:
        error.strategy = name_strategy(inquiry.mode)
        raise
