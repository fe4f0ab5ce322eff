"""The strategies that ask a model. To add one, write its file, name its mode in `ModelMode`, and register it here.

The type checker complains about a mode without a strategy.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from overspill.extraction import chunks, wrapper
from overspill.extraction.chunks import NumberedLines, Span, align_lines
from overspill.extraction.document import ExtractionFailed, ModelMode, Policy, name_strategy
from overspill.extraction.fallback import BY_ENGINE, ask_engine, fall_back
from overspill.extraction.findings import conclude_alone, cut_to_tokens
from overspill.extraction.full_chunked import compute_chunk_tokens, extract_full_chunked
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.prompting import PlainPrompts
from overspill.extraction.read_grep import extract_read_grep
from overspill.text import tokens
from overspill.text.encoding import encode
from overspill.text.regex import regex
from overspill.types import LIKELY, Extraction, Size

_WHOLE = regex(
    r"(?i)\b(?:summar(?:y|ies|i[sz](?:e[ds]?|ing|ations?))|sum(?:s|med|ming)? up|recap|synopsis|tl;?dr|in a nutshell|"
    r"(?:key|main) (?:points|takeaways)|overview|outline|gist|all|every|each|list|enumerate|how many|how often|count|"
    r"number of|total|most common|most frequent|distinct|unique|compare|everything|complete|entire|whole)\b",
)
_MAX_QUERY_CHARS = 10_000
_WINDOW_SHARE = 0.5
"""The share of the window, minus prompt and question, that passages may take."""
_ANSWER_SHARE = 0.08
"""The share of a reply's tokens for the model's words. The engine's passages still hold nearly as many answers."""
_WHOLE_ANSWER_SHARE = 0.5
"""The same share for a summary or a list, which passages cannot replace."""
_UNSUPPORTED_SHARE = 0.05
_MIN_ANSWER_TOKENS = 48
_MIN_PASSAGE_TOKENS = 32
_OUR_BYTES = 480
"""What our own words take up in a reply: its first line, the marks of two blocks, and two headings."""
_BYTES_PER_TOKEN = 5
"""An estimate for plain prose."""


def choose_mode(size: Size, policy: Policy, chunk_tokens: int) -> ModelMode:
    """The manuals' rule: read all chunks if there are few, or if lines are so long that line numbers and patterns do not help."""
    few = chunks.count(size.tokens, chunk_tokens, policy.overlap_percent) <= policy.max_chunks
    return "full-chunked" if few or size.average_line_bytes > policy.avg_line_bytes_threshold else "read-grep"


def choose_plain_mode(
    size: Size, policy: Policy, chunk_tokens: int, query: str, confidence: float | None, *, is_model_large: bool
) -> ModelMode:
    """`confidence` is the engine's, None if it found no passages. `is_model_large`: known to read long texts well.

    1. A question about the whole goes to a large model chunk by chunk, if one extraction can read all chunks.
    2. If the engine is confident, or the model is small or unknown, the model reads the engine's passages.
    3. Otherwise `choose_mode` decides, as for documents.
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


async def extract_focused(inquiry: Inquiry) -> Extraction:
    document = inquiry.document
    prompts = PlainPrompts(document, inquiry.query, inquiry.mode, inquiry.policy)
    nonce = wrapper.new_nonce()
    room = int(inquiry.measure_room(prompts.build_focused_request("", nonce)) * _WINDOW_SHARE)
    lines = await run_in_thread(lambda: _number_passages(inquiry, min(inquiry.policy.focus_tokens, room)))
    report = await inquiry.ask(prompts.build_focused_request(lines.text, nonce), nonce, lines)
    seen = [line.span for line in lines.lines]
    whole = Span(min(span.start for span in seen), max(span.end for span in seen))
    what = f"the passages of the output of {document.tool} ({document.size.bytes:,} bytes) that the built-in engine found"
    return await conclude_alone(inquiry, report, whole, seen, f"Searched: {what}.")


def _number_passages(inquiry: Inquiry, max_tokens: int) -> NumberedLines:
    """As many passages as fit with their line numbers. Blocks."""
    if inquiry.engine is None:
        raise ExtractionFailed("There is no engine to select passages with.")
    budget, read = max_tokens, inquiry.document.reader.read
    while True:
        passages = inquiry.engine(inquiry.document, inquiry.query, budget).excerpts
        groups = [align_lines(each.shown, read(each.start_byte, each.end_byte), each.start_byte) for each in passages]
        lines = NumberedLines(groups)
        if not lines.lines:
            raise ExtractionFailed("The built-in engine found no passages to read.")
        excess = inquiry.count_tokens(lines.text) - max_tokens
        if excess <= 0 or budget <= 1:
            return lines
        budget = max(min(budget - excess, budget * 9 // 10), 1)


async def extract_by_mode(inquiry: Inquiry) -> Extraction:
    """The cached result of an earlier question, or what the mode's strategy finds."""
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
    except ExtractionFailed as error:
        error.strategy = name_strategy(inquiry.mode)
        raise


async def extract_beside_engine(inquiry: Inquiry, mode: Literal["auto"] | ModelMode) -> Extraction:
    """A model's answer with the engine's passages below it, so that no model makes a reply worse than the engine's alone."""
    policy = inquiry.policy
    passages = await _ask_engine(inquiry, policy.max_tokens)
    shown = passages.text if passages else ""
    room = policy.max_tokens - _count_tokens(shown)
    if policy.max_bytes is not None:
        room = min(room, (policy.max_bytes - len(encode(shown)) - _OUR_BYTES) // _BYTES_PER_TOKEN)
    if mode == "auto":
        confidence = passages.confidence if passages and passages.excerpts else None
        size, chunk_tokens, is_large = inquiry.document.size, compute_chunk_tokens(inquiry), inquiry.model.is_large
        chosen = choose_plain_mode(size, policy, chunk_tokens, inquiry.query, confidence, is_model_large=is_large)
        inquiry = replace(inquiry, mode=chosen)
    reads_all = inquiry.mode == "full-chunked" and needs_whole(inquiry.query)
    limit = _limit_words(policy, _WHOLE_ANSWER_SHARE if reads_all else _ANSWER_SHARE)
    found = await extract_by_mode(replace(inquiry, max_answer_tokens=max(limit, room)))
    if found.found and not found.support:
        fault = f"Nothing was found in the stored output that supports the answer of {found.model}."
        return await _answer_instead(inquiry, found, passages, fault)
    if not found.found and passages is not None and passages.confidence >= LIKELY:
        fault = f"{found.model} found nothing, but the built-in engine is confident that it did."
        return await _answer_instead(inquiry, found, passages, fault)
    if passages is None or not passages.found:
        return found
    quoted = "\n".join(excerpt.text for excerpt in found.excerpts if not passages.quotes(excerpt))
    if _count_tokens(f"{found.text}\n{quoted}") > limit:
        quoted = ""  # the places of the quotes are enough
    fitted = await _fit_passages(inquiry, passages, f"{found.text}\n{quoted}")
    return replace(found, passages=replace(fitted, warnings=()), warnings=(*found.warnings, *passages.warnings))


def _limit_words(policy: Policy, share: float) -> int:
    return max(int(policy.max_tokens * share), min(_MIN_ANSWER_TOKENS, policy.max_tokens))


async def _ask_engine(inquiry: Inquiry, max_tokens: int) -> Extraction | None:
    """The engine's answer. None if the engine may not answer or failed: the model then answers alone."""
    with suppress(ExtractionFailed):
        return (
            await ask_engine(inquiry, max_tokens, name_strategy(inquiry.mode)) if "builtin" in inquiry.policy.fallback else None
        )
    return None


async def _answer_instead(inquiry: Inquiry, found: Extraction, passages: Extraction | None, fault: str) -> Extraction:
    """The answer of the engine or the next fallback, with the model's unsupported words last, in the room that is left."""
    if not inquiry.policy.fallback:
        return replace(found, warnings=(*found.warnings, fault))
    words = cut_to_tokens(found.text, _limit_words(inquiry.policy, _UNSUPPORTED_SHARE)) if found.found else ""
    if passages is None:
        answer = await fall_back(replace(inquiry, engine=None), name_strategy(inquiry.mode), fault)
        return replace(answer, unsupported=words)
    warnings = (f"{fault} {BY_ENGINE}", *passages.warnings)
    passages = await _fit_passages(inquiry, passages, words)
    return replace(passages, warnings=warnings, unsupported=words, planned_strategy=found.strategy)


async def _fit_passages(inquiry: Inquiry, passages: Extraction, words: str) -> Extraction:
    """Passages that leave room for the model's words. The caller that puts both into a reply fits them to its bytes."""
    most = max(inquiry.policy.max_tokens - _count_tokens(words), _MIN_PASSAGE_TOKENS)
    return passages if _count_tokens(passages.text) <= most else await _ask_engine(inquiry, most) or passages


def _count_tokens(text: str) -> int:
    """The number of tokens for the model that reads the reply, not for the model that extracts."""
    return tokens.count(text).tokens
