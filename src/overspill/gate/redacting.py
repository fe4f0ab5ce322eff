"""Hides secrets in the parts of a result that a model sees. Does not change what is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from overspill.errors import StoreError
from overspill.gate.collect import CollectedResult, block_text, field, text_block
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


def hide(redaction: Redaction, call: ToolCall, text: str) -> str:
    """Hide secrets in what is remembered and shown of a call besides its result. Most sessions hide nothing."""
    return redaction.redact(text, call.name, call.server) if redaction.is_on else text


async def redact_result(collected: CollectedResult, redaction: Redaction, call: ToolCall, *, may_pass: bool = True) -> None:
    """Redact its error and, if it may pass, its texts and the tool's own object. The spool keeps the original texts."""
    collected.broke_off = redaction.redact(collected.broke_off, call.name, call.server)
    redactor = redaction.shown(call.name, call.server)
    if collected.in_hand is not None and redactor is not None and may_pass:
        await run_off_loop(partial(_redact_in_hand, collected, redactor, collected.in_hand), collected.least_bytes)


def _redact_in_hand(collected: CollectedResult, redactor: Redactor, texts: Sequence[str]) -> None:
    shown = [redactor.redact(text) for text in texts]
    original = redact_object(redactor, collected.original)
    if shown == list(texts) and original is collected.original:
        return
    assert collected.spool is not None  # created here, from the original texts
    is_own = collected.value is collected.original
    collected.value = original if is_own else redact_object(redactor, collected.value)
    collected.original, collected.is_hidden = original, collected.value is None
    if collected.plain is not None:
        collected.plain = shown[0]
        return
    replaced = iter(shown)
    collected.texts = shown
    collected.content = [
        block if block_text(block) is None else _replace_text(block, next(replaced)) for block in collected.content or ()
    ]


def redact_object(redactor: Redactor, value: Any) -> Any:
    """The same object if it has no secrets; None if its secrets cannot be replaced."""
    try:
        written = to_json(value)
        shown = redactor.redact(written)
        return value if shown == written else json.loads(shown) if isinstance(value, str | list | dict) else None
    except (TypeError, ValueError, RecursionError):  # not JSON
        return None


def _replace_text(block: Block, text: str) -> Block:
    if not isinstance(block, Mapping):
        return text_block(text)
    if field(block, "type") == "text":
        return {**cast("Mapping[str, Any]", block), "text": text}
    return {**cast("Mapping[str, Any]", block), "resource": {**field(block, "resource"), "text": text}}


def open_source(
    redaction: Redaction, call: ToolCall, collected: CollectedResult, size: Size, sha256: str
) -> tuple[OutputText, list[str]]:
    """Blocks. A finished output as its reply shows it, and notes on secrets in it. `sha256`: if it is stored whole."""
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
