"""Which mode `auto` means. The rules are in the order in which they apply."""

from __future__ import annotations

import re

from overspill.extraction import chunks
from overspill.extraction.document import ModelMode, Policy
from overspill.types import Size

CONFIDENT = 0.4
"""At this confidence and above, the engine's passages mostly hold the answer: they do for 93 % of the development questions that
reach it, as do 1 in 9 questions that have no answer."""

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
    if confidence is not None and (confidence >= CONFIDENT or not is_model_large):
        return "focused"
    return choose_mode(size, policy, chunk_tokens)


def needs_whole(query: str) -> bool:
    """Whether no selection of passages can answer it: a summary, a list of all, a count."""
    return _WHOLE.search(query[:_MAX_QUERY_CHARS]) is not None
