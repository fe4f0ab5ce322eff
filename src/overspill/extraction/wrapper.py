"""The report a model hands in: `<ai-agent-NONCE-FINAL format="text"> … </ai-agent-NONCE-FINAL>`, read leniently.

The nonce is newer than the document, so no document can hold a wrapper that counts.
"""

from __future__ import annotations

import secrets

from overspill.text.regex import Pattern, escape, regex

_THINKING = regex(r"(?is)\s*+<(think|thinking|reasoning|thought)>.*?</\1>")
_UNFINISHED_THINKING = regex(r"(?i)\s*+<(?:think|thinking|reasoning|thought)>")
_FENCE = regex(r"(?s)```[\w-]*[ \t]*\n(.*)\n[ \t]*```")
_NOISE = regex("[\u200b\u2060\ufeff\x00]")
_TEMPLATE = regex(r"<\|(?:im_start|start_header_id)\|>[ \t]*+\w{0,20}+|<\|[\w-]{1,40}+\|>|</?s>|\[/?INST\]")
"""What separates the turns of a chat. A model that writes it has gone past the end of its answer."""
_PLACEHOLDER = regex(r"(?s)[\s.…]*|your answer in your own words\b.*|QUOTES:\s*> a line that matches, copied\b.*")
_MAX_WRAPPERS_READ = 20
"""A limit, because each of many nested wrappers may be as long as the whole text: reading them all would take too long."""


def new_nonce() -> str:
    return secrets.token_hex(6)


def opening_tag(nonce: str, format: str = "text") -> str:
    return f'<ai-agent-{nonce}-FINAL format="{format}">'


def closing_tag(nonce: str) -> str:
    return f"</ai-agent-{nonce}-FINAL>"


def unwrap(text: str, nonce: str) -> str | None:
    """The content of the last complete wrapper, because models correct themselves in a later one.

    Without a complete wrapper, the text after the last opening tag. Thinking at the beginning does not count, nor does a wrapper
    that is empty or only repeats the instructions. Wrappers of the same nonce inside are removed.
    """
    text = _NOISE.sub("", text)
    if thought := _THINKING.match(text):
        text = text[thought.end() :]
    tag = compile_tag(nonce)
    complete: list[tuple[int, int]] = []
    openings: list[int] = []
    for found in tag.finditer(text):
        if not found[1]:
            openings.append(found.end())
        elif openings:
            complete.append((openings.pop(), found.start()))
    unfinished = [(openings[-1], len(text))] if openings else []
    spans = [*complete[: -_MAX_WRAPPERS_READ - 1 : -1], *unfinished]
    candidates = (_clean_content(tag.sub("", text[start:end])) for start, end in spans)
    return next((content for content in candidates if content), None)


def find_text_after(text: str, nonce: str) -> str:
    """The text after the last closing tag, where some models put their quotes."""
    closing = [found.end() for found in compile_tag(nonce).finditer(text) if found[1]]
    return text[closing[-1] :] if closing else ""


def strip(text: str, nonce: str) -> str:
    """The text of an answer in the plain contract: without thinking, chat markers, and tags of a wrapper."""
    text = _TEMPLATE.sub("\n", _NOISE.sub("", text))
    if thought := _THINKING.match(text):
        text = text[thought.end() :]
    elif _UNFINISHED_THINKING.match(text):
        return ""
    return compile_tag(nonce).sub("\n", text).strip()


def compile_tag(nonce: str) -> Pattern[str]:
    return regex(rf"(?i)(?:<|&lt;)\s{{0,8}}(/?)\s{{0,8}}ai-agent-{escape(nonce)}-FINAL\b[^<>&]{{0,200}}(?:>|&gt;)")


def _clean_content(text: str) -> str:
    text = text.strip()
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1].strip()
    return "" if _PLACEHOLDER.fullmatch(text) else text
