"""Hide secrets in what a model is shown of a result. What is stored is not changed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from overspill.errors import StoreError
from overspill.gate.collect import CollectedResult, block_text, field, text_block
from overspill.gate.replies import OutputText
from overspill.gate.serialise import to_json
from overspill.redaction.policy import Redaction
from overspill.redaction.redactor import Redactor, Replacement, apply, count_kinds
from overspill.redaction.view import RedactedParts
from overspill.store.readers import BytesReader
from overspill.store.spool import Spool
from overspill.text import encoding
from overspill.types import Block, Size, ToolCall
from overspill.wording import replies as wording

MAX_WHOLE_BYTES = 1 << 20
"""Searched as a whole for its reply. Of larger outputs, the parts that the reply shows."""
MAX_COUNTED_BYTES = 16 << 20
"""Searched where secrets are only counted."""


def redact_result(collected: CollectedResult, redactor: Redactor, *, may_pass: bool) -> None:
    """In why it failed and, if it may pass, in its texts and in the tool's own object. The spool has the texts as they came."""
    collected.broke_off = redactor.redact(collected.broke_off)
    texts = collected.in_hand
    if texts is None or not may_pass:
        return
    shown = [redactor.redact(text) for text in texts]
    original = _redact_object(redactor, collected.original)
    if shown == list(texts) and original is collected.original:
        return
    assert collected.spool is not None  # made now, from the texts as they came
    is_own = collected.value is collected.original
    collected.value = original if is_own else _redact_object(redactor, collected.value)
    collected.original, collected.is_hidden = original, collected.value is None
    if collected.plain is not None:
        collected.plain = shown[0]
        return
    replaced = iter(shown)
    collected.texts = shown
    collected.content = [
        block if block_text(block) is None else _replace_text(block, next(replaced)) for block in collected.content or ()
    ]


def _redact_object(redactor: Redactor, value: Any) -> Any:
    """The same object if there is nothing to hide in it; None if what is in it cannot be replaced."""
    if value is None:
        return None
    try:
        return redactor.redact_value(value) if redactor.find(encoding.encode(to_json(value))) else value
    except (TypeError, ValueError, RecursionError):  # not JSON
        return None


def _replace_text(block: Block, text: str) -> Block:
    if not isinstance(block, Mapping):
        return text_block(text)
    if field(block, "type") == "text":
        return {**cast("Mapping[str, Any]", block), "text": text}
    return {**cast("Mapping[str, Any]", block), "resource": {**field(block, "resource"), "text": text}}


class ShownSource:
    """A finished output as its reply shows it, and what the reply says about secrets in it."""

    def __init__(self, redaction: Redaction, call: ToolCall, collected: CollectedResult, size: Size, *, is_stored: bool) -> None:
        spool = collected.spool
        self.text = OutputText(spool, size, collected.plain)
        self._warning = ""
        self._parts: RedactedParts | None = None
        self._found: list[Replacement] = []
        if (redactor := redaction.shown(call.name, call.server)) is not None:
            self._parts = RedactedParts(redactor, spool.read, size.bytes)
            self.text = OutputText(self._parts, size)
            if not is_stored or size.bytes <= MAX_WHOLE_BYTES:
                self.text, self._found = _redact_whole(redactor, spool, size, None if is_stored else collected.plain)
        elif (counter := redaction.warned(call.name, call.server)) is not None:
            counted = count_kinds(counter.find(_read(spool, min(size.bytes, MAX_COUNTED_BYTES))))
            self._warning = wording.may_have_secrets(counted, size.bytes, MAX_COUNTED_BYTES) if counted else ""

    @property
    def remarks(self) -> list[str]:
        """To be asked for when the reply is drafted: only then is it known what was hidden."""
        found = self._found or (list(self._parts.found) if self._parts else [])
        hidden = wording.hidden_secrets(count_kinds(found), has_numbers=any(each.is_number for each in found))
        return [text for text in (hidden if found else "", self._warning) if text]


def _redact_whole(redactor: Redactor, spool: Spool, size: Size, plain: str | None) -> tuple[OutputText, list[Replacement]]:
    """`plain`: the text, if the spool does not have all of it."""
    data = _read(spool, size.bytes) if plain is None else encoding.encode(plain)
    found = redactor.find(data)
    shown = apply(data, found)
    text = encoding.decode(shown)
    size = Size(len(shown), len(text), size.lines, size.tokens, size.estimated)
    return OutputText(BytesReader(shown), size, text), found


def _read(spool: Spool, end: int) -> bytes:
    try:
        return spool.read(0, end)
    except StoreError:  # removed since; the reply says so
        return b""
