"""Hides secrets in the parts of a result that a model sees. Does not change what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any, cast

from overspill.errors import StoreError
from overspill.gate.collect import CollectedResult, block_text
from overspill.gate.off_loop import run_off_loop
from overspill.gate.replies import OutputText
from overspill.gate.serialise import to_json
from overspill.redaction.inlet import Inlet
from overspill.redaction.policy import Redaction
from overspill.redaction.redactor import Redactor, Replacement, count_kinds
from overspill.redaction.view import redact_text
from overspill.store.readers import BytesReader
from overspill.text import encoding
from overspill.types import Block, Size, ToolCall
from overspill.wording import replies as wording

_CONTENTS = ("text", "data", "blob")
"""The fields of a block that hold its content, not facts about it."""


def hide(redaction: Redaction, call: ToolCall, text: str) -> str:
    """Hide secrets in what is remembered and shown of a call besides its result. Most sessions hide nothing."""
    return redaction.redact(text, call.name, call.server) if redaction.is_on else text


async def redact_result(collected: CollectedResult, redaction: Redaction, call: ToolCall, *, may_pass: bool = True) -> None:
    """Redact a result's error, its blocks' other fields and, if it may pass, its texts and the tool's object. The spool keeps the
    original texts."""
    collected.broke_off = redaction.redact(collected.broke_off, call.name, call.server)
    redactor = redaction.shown(call.name, call.server)
    if redactor is not None and (collected.in_hand is not None if may_pass else collected.content is not None):
        await run_off_loop(
            partial(_redact_in_hand, collected, redactor, collected.in_hand or (), may_pass), collected.least_bytes
        )


def _redact_in_hand(collected: CollectedResult, redactor: Redactor, texts: Sequence[str], may_pass: bool) -> None:
    shown = [redactor.redact(text) for text in texts] if may_pass else list(texts)
    replaced = iter(shown)
    content = [_redact_block(redactor, block, replaced) for block in collected.content or ()]
    original = redact_object(redactor, collected.original)
    if shown == list(texts) and original is collected.original and all(map(is_, content, collected.content or ())):
        return
    assert collected.spool is not None  # created here, from the original texts
    if not may_pass:
        collected.original, collected.content = original, content
        return
    is_own = collected.value is collected.original
    collected.value = original if is_own else redact_object(redactor, collected.value)
    collected.original, collected.is_hidden = original, collected.value is None
    if collected.plain is not None:
        collected.plain = shown[0]
        return
    collected.texts, collected.content = shown, content


def redact_object(redactor: Redactor, value: Any) -> Any:
    """The same object if it has no secrets; None if its secrets cannot be replaced."""
    try:
        written = to_json(value)
        shown = redactor.redact(written)
        return value if shown == written else json.loads(shown) if isinstance(value, str | list | dict) else None
    except (TypeError, ValueError, RecursionError):  # not JSON
        return None


def _redact_block(redactor: Redactor, block: Block, texts: Iterator[str]) -> Block:
    """The same block if it has no secrets. The data of images and files stays. `texts`: the texts of all blocks, with marks."""
    any_block: Any = block
    whole: Mapping[str, Any] = any_block if isinstance(block, Mapping) else json.loads(to_json(block))
    resource = cast("Mapping[str, Any]", whole.get("resource") or {})
    rest = [{key: value for key, value in each.items() if key not in (*_CONTENTS, "resource")} for each in (whole, resource)]
    shown: list[dict[str, Any]] | None = redact_object(redactor, rest)
    text = block_text(block)
    shown_text = next(texts) if text is not None else None
    if shown is rest and shown_text == text:
        return any_block
    outer, inner = shown or [{"type": whole["type"]}, dict[str, Any]()]
    outer |= {key: whole[key] for key in _CONTENTS if key in whole}
    if resource:
        outer["resource"] = inner | {key: resource[key] for key in _CONTENTS if key in resource}
    if text is not None:
        (outer["resource"] if resource else outer)["text"] = shown_text
    return outer


def open_source(
    redaction: Redaction, call: ToolCall, collected: CollectedResult, size: Size, sha256: str
) -> tuple[OutputText, list[str]]:
    """A finished output as its reply shows it, and notes on secrets in it. Blocks. `sha256`: set if it is stored whole."""
    spool, plain = collected.spool, collected.plain
    if not redaction.is_on:
        return OutputText(spool, size, plain), []
    if isinstance(spool.filter, Inlet):
        found = spool.filter.found
        return OutputText(spool, size), [wording.unstored_secrets(count_kinds(found), _has_numbers(found))] if found else []
    hiding, counting = redaction.shown(call.name, call.server), redaction.warned(call.name, call.server)
    if (redactor := hiding or counting) is None:
        return OutputText(spool, size, plain), []
    try:
        reader = spool.open() if sha256 or plain is None else BytesReader(encoding.encode(plain))
    except StoreError:  # it was removed in the meantime; the reply says so
        return OutputText(BytesReader(b""), size), []
    found = redactor.find(reader.buffer(), sha256)
    if not found:
        return OutputText(spool, size, plain), []
    if hiding is None:
        return OutputText(spool, size, plain), [wording.may_have_secrets(count_kinds(found))]
    shown = redact_text(redactor, reader, size, sha256)
    assert shown is not None
    return OutputText(shown.reader, shown.size), [wording.hidden_secrets(count_kinds(found), _has_numbers(found))]


def _has_numbers(found: list[Replacement]) -> bool:
    return any(each.is_number for each in found)
