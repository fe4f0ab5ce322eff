"""Drafts what a model sees instead of a kept output, in several versions, the richest first. The first that fits is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from overspill.decoding import HEAD_BYTES, describe
from overspill.errors import StoreError
from overspill.gate.cards.draft import CardRoom, draft_cards
from overspill.gate.collect import CollectedResult, field, join_texts, text_block
from overspill.gate.images import SealedKept, StoreBlob, describe_blob, describe_images
from overspill.settings import Settings
from overspill.settings.keys import DEFAULT_STRATEGY
from overspill.settings.presets import TOOL_STRATEGIES
from overspill.store.protocols import Reader
from overspill.store.spool import Spool
from overspill.text import encoding
from overspill.text.images import identify_image
from overspill.text.names import own_name
from overspill.truncate import ENDS_ARE_ENOUGH, BothEnds, Cut, read_ends, read_shape, truncate, truncate_ends
from overspill.types import Block, Kept, Size, Truncation
from overspill.wording import replies as wording

_MAX_PARSED_BYTES = 16 << 20  # for strategies that need the whole text; larger outputs show their ends
_MAX_BYTES_WITH_IMAGES = 4 << 20  # larger outputs are not searched for images; a larger image would not be shown anyway
_MIN_PREVIEW_BYTES = 100  # less would show only a marker
_FALLBACK_CHARS = 8_000  # the limit for text that could not be kept whole, if no other limit applies


class ReplyDraft(Struct, frozen=True):
    """Text blocks to show instead of the output, and how they were cut from it."""

    blocks: tuple[str, ...]
    cut: Cut | None = None
    is_unanswered: bool = False
    """Whether it lacks what the caller was looking for, although the output may have it."""

    @property
    def text(self) -> str:
        return "\n\n".join(self.blocks)


class OutputText:
    """A finished output. Can be shortened without loading all of it."""

    def __init__(self, spool: Spool | Reader, size: Size, plain: str | None = None) -> None:
        self.size = size
        self._spool = spool
        self._plain = plain

    def truncate_to_chars(self, limit: int, settings: Settings) -> Cut:
        """Shorten it to `limit` characters, by the tool's strategy."""
        strategy, shape = settings.truncation.default_strategy, read_shape(settings.truncation)
        if strategy == "none":  # the limit is binding here
            strategy = "head_tail"
        needs_whole = strategy not in ENDS_ARE_ENOUGH or self.size.chars <= 2 * limit
        if needs_whole and (whole := self._whole(_MAX_PARSED_BYTES)) is not None:
            return truncate(whole, limit, strategy, shape)
        size, plain = self.size, self._plain
        if plain is None:
            ends = read_ends(self.read, size.bytes, size.chars, size.lines, limit)
        else:
            ends = BothEnds(plain[:limit], plain[-limit:], size.chars, size.lines)
        return truncate_ends(ends, limit, strategy, shape)

    def truncate_to_bytes(self, limit: int, settings: Settings) -> Cut:
        """Shorten it to `limit` bytes of UTF-8."""
        return self.truncate_until(limit, limit, lambda text: len(encoding.encode(text)), settings)

    def truncate_until(self, chars: int, limit: int, count: Callable[[str], int], settings: Settings) -> Cut:
        """Shorten it to at most `chars` characters, and further until it counts no more than `limit`."""
        while (used := count((cut := self.truncate_to_chars(max(chars, 1), settings)).text)) > limit and chars > 1:
            chars = min(chars - 1, chars * limit // used)
        return cut

    def describe_images(self, of: Kept, store: StoreBlob | None = None) -> tuple[list[SealedKept], list[str]]:
        whole = self._whole(_MAX_BYTES_WITH_IMAGES)
        return ([], []) if whole is None else describe_images(whole, of, store)

    def _whole(self, max_bytes: int) -> str | None:
        if self.size.bytes > max_bytes:
            return None
        return self._plain if self._plain is not None else encoding.decode(self.read(0, self.size.bytes))

    def read(self, start: int, end: int) -> bytes:
        try:
            return self._spool.read(start, end)
        except StoreError:  # the output is gone; the reply says so
            return b""


def show_in_hand(collected: CollectedResult) -> tuple[list[Block], str, bool]:
    """The blocks of a passing result for the model, its text, and whether the tool's own object may pass too."""
    plain = collected.plain
    if plain is None:
        assert collected.content is not None
        return collected.content, join_texts(collected.content, "\n"), not collected.is_hidden
    shown = encoding.clean(plain)
    if collected.broke_off:
        shown = "\n\n".join((shown, *collected.notes))
    return [text_block(shown)], shown, collected.error is None and not collected.is_hidden


Form: TypeAlias = Callable[[Kept, OutputText, Settings], list[ReplyDraft]]


def draft_handle(kept: Kept, source: OutputText, settings: Settings, images: Sequence[str] = ()) -> list[ReplyDraft]:
    """The message with a card, with smaller cards, and without any card. `images`: a line about each image in the output."""
    words = settings.wording
    message = "\n".join((words.stored(kept, settings.surface), *images))
    frame = f"{message}\n\n{wording.preview('', kept.size.chars)}\n"
    most = (settings.size_cap or _MAX_PARSED_BYTES) - len(encoding.encode(frame))
    has_room = most >= _MIN_PREVIEW_BYTES and settings.preview_chars != 0 and settings.preview_tokens != 0
    if not has_room or settings.truncation.default_strategy == "none":
        return [ReplyDraft((message,))]
    room = CardRoom(settings, most)
    if settings.truncation.default_strategy != TOOL_STRATEGIES.get(own_name(kept.tool, kept.server).lower(), DEFAULT_STRATEGY):
        # The settings choose another strategy than the tool's default, so that strategy makes the preview.
        cut = source.truncate_until(room.chars, room.tokens, room.count, settings)
        shown = wording.preview(encoding.clean(cut.text), cut.omitted_chars)
        return [ReplyDraft((f"{message}\n\n{shown}",), cut), ReplyDraft((message,))]
    heading = "\n".join((words.heading(kept), *images))
    cards = draft_cards(source.read, source.size, words.id(kept), settings.surface, room)
    drafts = [
        ReplyDraft((f"{heading}\n\n{each.framed}",), Cut(each.text, "card", kept.size.lines, kept.size.chars)) for each in cards
    ]
    return [*drafts, ReplyDraft((message,))]


def draft_artifact(kept: Kept, source: OutputText, settings: Settings) -> list[ReplyDraft]:
    limit = settings.truncation.inline_limit
    uncut = settings.truncation.default_strategy == "none"
    if limit is None or uncut or kept.size.chars > settings.truncation.artifact_threshold:
        return [ReplyDraft((wording.reference_hints(kept),))]
    cut = source.truncate_to_chars(limit, settings)
    shown = wording.shortened_reference(kept, cut.strategy, len(cut.text))
    return [ReplyDraft((encoding.clean(cut.text), shown), cut), ReplyDraft((wording.reference_hints(kept),))]


def draft(kept: Kept, source: OutputText, settings: Settings, store: StoreBlob) -> tuple[list[ReplyDraft], list[SealedKept]]:
    """Drafts in the configured answer form, with a list of the output's images. `store` stores each image."""
    if not settings.wording.shows_images or settings.answer_form != "handle":
        return FORMS[settings.answer_form](kept, source, settings), []
    blobs, lines = source.describe_images(kept, store)
    bare = [ReplyDraft((wording.stored_message(kept, settings.surface),))] if lines else []
    return draft_handle(kept, source, settings, lines) + bare, blobs


FORMS: dict[str, Form] = {
    "handle": draft_handle,
    "artifact": draft_artifact,
    "ready": lambda kept, source, settings: [ReplyDraft((wording.ready_message(kept),))],
}


def draft_incomplete(kept: Kept | None, total: int, why: str, source: OutputText, settings: Settings) -> list[ReplyDraft]:
    """For an output that could not be stored whole: as much as the limits allow, and a note on what is missing."""
    note = settings.wording.incomplete_output(kept, total, why, settings.surface)
    limit = settings.truncation.inline_limit or settings.size_cap or _FALLBACK_CHARS
    cut = source.truncate_to_bytes(limit, settings)
    return [ReplyDraft((encoding.clean(cut.text), note), cut), ReplyDraft((note,))]


def draft_binary(kept: Kept | None, spool: Spool, why: str, settings: Settings, block: Block = None) -> list[ReplyDraft]:
    """Drafts for an output that is not plain text: its type, judged by its block or its bytes, and how to read it. Blocks."""
    words = settings.wording
    if kept is None or why:
        return [ReplyDraft((words.incomplete_output(kept, spool.total, why, settings.surface),))]
    try:
        head = spool.read(0, HEAD_BYTES)
    except StoreError:  # it was removed in the meantime
        head = b""
    found = describe(head)
    what = describe_blob(block) if block is not None else found.what
    has_text = found.has_text and (block is None or field(block, "type") == "resource")  # an image has no text
    is_image = words.shows_images and kept.size.bytes <= settings.max_inline_blob and identify_image(head) is not None
    message = words.binary_message(kept, what, settings.surface, has_text=has_text, is_image=is_image)
    return [ReplyDraft((message,))]


def describe_truncation(cut: Cut | None, size: Size, count: Callable[[str], int], artifact_id: str | None) -> Truncation:
    """How the text was shortened. Without a cut, the model gets only a reference to the output."""
    cut = cut or Cut("", "reference", size.lines, size.chars)
    return Truncation(
        original_size=size.chars,
        truncated_size=len(cut.text),
        strategy_used=cut.strategy,
        was_truncated=cut.omitted_chars > 0,
        artifact_id=artifact_id,
        original_tokens=size.tokens,
        truncated_tokens=count(cut.text),
        omitted_lines=cut.omitted_lines,
        omitted_chars=cut.omitted_chars,
    )
