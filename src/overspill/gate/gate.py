"""The product in one file: a collected result is passed on untouched, or kept whole and answered with something small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
import msgspec
from msgspec import Struct

from overspill import handles, wording
from overspill.budget import ContextBudget
from overspill.errors import OverspillError, StoreError
from overspill.gate import replies
from overspill.gate.blobs import blob_size, decode_blob, describe_blob
from overspill.gate.collect import CollectedResult, block_text, join_texts, replace_texts, text_block, to_json
from overspill.gate.decide import Cut, Keep, Pass, Room, Verdict, decide, passes_for_sure
from overspill.gate.kept import (
    MAX_ARGUMENT_CHARS,
    MAX_CHECKPOINTS,
    MAX_INLINE_BLOB_BYTES,
    BoundedCache,
    HeldOutputs,
    KeptOutputs,
)
from overspill.gate.replies import OutputText, ReplyDraft
from overspill.record.events import OutputStored, now_ms
from overspill.record.ledger import Ledger
from overspill.settings import Settings
from overspill.store.meter import size_of
from overspill.store.protocols import Shelf
from overspill.store.spool import SealedOutput, Spool
from overspill.text import encoding, tokens
from overspill.text.names import source_of
from overspill.types import Block, Kept, Reason, Reply, Size, ToolCall


class LateOutput(Struct, frozen=True):
    """What became of a result that finished in the background."""

    blocks: Sequence[Block] = ()
    missing: str = ""
    """What could not be stored, and why."""
    error: str = ""
    """Why nothing of it is left."""


class Gate:
    """Stands between a session's tools and its model."""

    def __init__(self, settings: Settings, shelf: Shelf, ledger: Ledger, budget: ContextBudget | None = None) -> None:
        self.settings = settings
        self.kept = KeptOutputs(ledger)
        self.checkpoints = BoundedCache[list[tuple[int, int, int]]](MAX_CHECKPOINTS, len)
        """By stored output, places from which to count lines and characters. Where they are missing, counting starts at zero."""
        self.arguments = BoundedCache[str](MAX_ARGUMENT_CHARS, len)
        """By stored output, the arguments of its call as JSON: for a prompt, in memory only."""
        self.held = HeldOutputs()
        self._shelf = shelf
        self._ledger = ledger
        self._budget = budget
        self._inline_blob_bytes = 0  # of results that finished in the background

    def collector(self, settings: Settings, new_id: Callable[[], str] = handles.new) -> CollectedResult:
        """`settings`, here and below: those of the tool."""
        return CollectedResult(partial(self._spool, settings, new_id))

    async def deliver(self, call: ToolCall, got: CollectedResult, settings: Settings) -> Reply:
        """Decide, reserve, keep, word: in the caller, when the answer is really given."""
        if got.plain is not None and self._budget is None and (settings.off or passes_for_sure(got.plain, settings)):
            return self._reply_text(got, got.plain)
        size = got.spool.size
        match self._verdict(got, size, settings):
            case Pass():
                reply = await self._pass_on(got, size, settings)
            case Cut(limit):
                reply = await self._truncate(got, size, limit, settings)
            case Keep(reason):
                reply = await self._keep_and_word(call, got, size, reason, settings)
        return await self._keep_large_blobs(call, reply, settings)

    async def keep(self, call: ToolCall, got: CollectedResult, reason: Reason) -> Kept:
        """Store a finished output. StoreError when nothing of it could be stored."""
        sealed = await anyio.to_thread.run_sync(got.spool.seal)
        kept = self._describe(call, got, sealed, reason)
        self._ledger.record(OutputStored(now_ms(), kept, call.kind))
        self.kept.add(kept)
        self.checkpoints.put(kept.id, sealed.checkpoints)
        self.arguments.put(kept.id, _as_json(call))
        return kept

    async def keep_for_later(self, call: ToolCall, got: CollectedResult, settings: Settings) -> LateOutput:
        """Keep a result that finished in the background: in memory, as far as possible, where it cannot be stored."""
        blocks = await self._other_blocks(call, got, settings)
        try:
            await self.keep(call, got, "background")
        except OverspillError as error:
            if (kept := self._hold(call, got, str(error))) is None:
                return LateOutput(blocks, error=wording.lost_output(got.spool.total, str(error)))
            return LateOutput(blocks, kept.missing)
        return LateOutput(blocks)

    def _hold(self, call: ToolCall, got: CollectedResult, why: str) -> Kept | None:
        """Keep in memory what is left of an output that could not be stored; None when nothing is."""
        sealed = got.spool.rescue(self.held.room, why)
        if sealed is None:
            return None
        data, described = sealed
        self.held.add(got.spool.id, data)
        kept = self._describe(call, got, described, "background")
        self.kept.add_unstored(kept)
        return kept

    async def _other_blocks(self, call: ToolCall, got: CollectedResult, settings: Settings) -> list[Block]:
        """What comes beside the text of a result. A blob that is too large for a reply or for memory is stored, and a text says
        where."""
        blocks: list[Block] = []
        for block in got.content or ():
            if block_text(block) is not None:
                continue
            size = blob_size(block)
            if size > min(settings.max_inline_blob, MAX_INLINE_BLOB_BYTES - self._inline_blob_bytes):
                blocks.append(text_block((await self._keep_blob(call, block, settings))[1]))
            else:
                self._inline_blob_bytes += size
                blocks.append(block)
        return blocks

    def reserve(self, candidates: Sequence[ReplyDraft]) -> tuple[ReplyDraft, bool]:
        """The first answer the context has room for; the last one anyway."""
        if self._budget is None:
            return candidates[0], True
        for answer in candidates:
            if self._budget.reserve(self._count_tokens(answer.text)):
                return answer, True
        self._budget.charge(self._count_tokens(candidates[-1].text))
        return candidates[-1], False

    @property
    def room(self) -> int | None:
        """Tokens the next answer may have."""
        return None if self._budget is None else self._budget.room

    def _verdict(self, got: CollectedResult, size: Size, settings: Settings) -> Verdict:
        if got.media == "binary":
            return Keep("binary")
        room = None if self._budget is None else Room(now=self._budget.room, alone=self._budget.capacity)
        verdict = decide(size, settings, room)
        in_hand = got.plain is not None or got.content is not None
        if got.spool.failure and not (in_hand and _keeps_nothing(settings)):
            # Over the limit of one output, or a store that does not work: what is not whole cannot pass.
            return verdict if isinstance(verdict, Keep) else Keep("size_cap")
        if isinstance(verdict, Pass) and self._budget is not None and not _keeps_nothing(settings):
            return verdict if self._budget.reserve(self._tokens_of(got, size)) else Keep("reserve_failed")
        return verdict

    async def _pass_on(self, got: CollectedResult, size: Size, settings: Settings) -> Reply:
        fits = True
        if self._budget is not None and _keeps_nothing(settings):
            need = self._tokens_of(got, size)
            if not (fits := self._budget.reserve(need)):
                self._budget.charge(need)
        return msgspec.structs.replace(await self._reply_whole(got, size), fits=fits)

    async def _reply_whole(self, got: CollectedResult, size: Size) -> Reply:
        plain = got.plain
        if plain is None and got.content is None:
            try:
                plain = encoding.decode(await _off_loop(lambda: got.spool.read(0, size.bytes), size.bytes))
            except StoreError as error:
                got.is_error, plain = True, wording.incomplete_output(None, got.spool.total, str(error), ())
        if not got.spool.in_memory:
            await anyio.to_thread.run_sync(got.spool.discard)
        if plain is not None:
            return self._reply_text(got, plain)
        assert got.content is not None
        return self._reply(got.content, join_texts(got.content, "\n"), got)

    def _reply_text(self, got: CollectedResult, plain: str) -> Reply:
        shown = "\n\n".join((encoding.clean(plain), *_notes(got))) if got.broke_off else encoding.clean(plain)
        return Reply(text=shown, content=[{"type": "text", "text": shown}], is_error=got.is_error, model=self.settings.model)

    async def _truncate(self, got: CollectedResult, size: Size, limit: int, settings: Settings) -> Reply:
        source = OutputText(got.spool, size, got.plain)
        cut = await _off_loop(lambda: source.truncate_to_bytes(limit, settings), size.bytes)
        facts = replies.describe_truncation(cut, size, self._count_tokens, None)
        answer, fits = self.reserve([ReplyDraft((encoding.clean(cut.text), *_notes(got)))])
        if not got.spool.in_memory:
            await anyio.to_thread.run_sync(got.spool.discard)
        return self._reply(replace_texts(got.content, answer.blocks), answer.text, got, fits=fits, truncation=facts)

    async def _keep_and_word(self, call: ToolCall, got: CollectedResult, size: Size, reason: Reason, settings: Settings) -> Reply:
        kept: Kept | None = None
        try:
            kept = await self.keep(call, got, reason)
            unstored = got.spool.failure
        except StoreError as error:
            unstored = str(error)
        if kept is not None:
            size = kept.size
        if unstored and got.plain is not None:  # what is not stored was not measured either
            size = await anyio.to_thread.run_sync(size_of, got.plain, settings.model)
        source = OutputText(got.spool, size, got.plain)

        def word() -> list[ReplyDraft]:
            if got.media == "binary":
                return [ReplyDraft((self._describe_binary(kept, got.spool.total, unstored, "Binary output"),))]
            if unstored:
                return replies.draft_incomplete(kept, got.spool.total, unstored, source, settings)
            assert kept is not None
            return replies.FORMS[settings.answer_form](kept, source, settings)

        candidates = await _off_loop(word, got.spool.total)
        answer, fits = self.reserve([ReplyDraft((*each.blocks, *_notes(got)), each.cut) for each in candidates])
        facts = replies.describe_truncation(answer.cut, size, self._count_tokens, kept and kept.artifact_id)
        return self._reply(replace_texts(got.content, answer.blocks), answer.text, got, fits=fits, kept=kept, truncation=facts)

    async def _keep_large_blobs(self, call: ToolCall, reply: Reply, settings: Settings) -> Reply:
        """Images, audio and binary resources pass in place unless they are too large to hand on."""
        if _keeps_nothing(settings) or not any(blob_size(block) > settings.max_inline_blob for block in reply.content):
            return reply
        content: list[Block] = []
        kept, fits = reply.kept, reply.fits
        for block in reply.content:
            if blob_size(block) > settings.max_inline_blob:
                found, shown = await self._keep_blob(call, block, settings)
                answer, fitted = self.reserve([ReplyDraft((shown,))])
                kept, fits, block = kept or found, fits and fitted, text_block(answer.text)
            content.append(block)
        return msgspec.structs.replace(reply, text=join_texts(content, "\n\n"), content=content, kept=kept, fits=fits)

    async def _keep_blob(self, call: ToolCall, block: Block, settings: Settings) -> tuple[Kept | None, str]:
        got = CollectedResult(partial(self._spool, settings))
        got.media = "binary"
        await anyio.to_thread.run_sync(lambda: got.spool.add(decode_blob(block)))
        what = describe_blob(block)
        try:
            kept = await self.keep(call, got, "binary")
        except StoreError as error:
            return None, wording.incomplete_output(None, got.spool.total, str(error), ())
        return kept, self._describe_binary(kept, got.spool.total, kept.missing, what)

    def _describe(self, call: ToolCall, got: CollectedResult, sealed: SealedOutput, reason: Reason) -> Kept:
        missing = sealed.missing or (got.broke_off and f"the tool failed before it finished: {got.broke_off}")
        return Kept(
            session=self._shelf.session,
            id=got.spool.id,
            tool=call.name,
            server=call.server,
            reason=reason,
            size=sealed.size,
            sha256=sealed.sha256,
            created_ms=handles.created_ms(got.spool.id),
            media=got.media,
            source=source_of(call.name, call.args),
            blocks=got.boundaries,
            missing=missing,
        )

    def _reply(self, content: list[Block], shown: str, got: CollectedResult, **facts: Any) -> Reply:
        model, original = self.settings.model, got.original
        return Reply(text=shown, content=content, is_error=got.is_error, model=model, original=original, **facts)

    def _spool(self, settings: Settings, new_id: Callable[[], str] = handles.new) -> Spool:
        return Spool(self._shelf, new_id(), settings.truncation.max_artifact_size, settings.model)

    def _describe_binary(self, kept: Kept | None, total: int, unstored: str, what: str) -> str:
        offered = self.settings.surface
        if kept is None or unstored:
            return wording.incomplete_output(kept, total, unstored, offered)
        return wording.binary_message(kept, what, offered)

    def _tokens_of(self, got: CollectedResult, size: Size) -> int:
        return size.tokens + sum(self._count_tokens(note) for note in _notes(got))

    def _count_tokens(self, shown: str) -> int:
        return tokens.count(shown, self.settings.model).tokens


_T = TypeVar("_T")
_AT_ONCE = 64 * 1024  # bytes worked on without leaving the event loop


async def _off_loop(work: Callable[[], _T], size: int) -> _T:
    return work() if size <= _AT_ONCE else await anyio.to_thread.run_sync(work)


def _keeps_nothing(settings: Settings) -> bool:
    return settings.off or not settings.tool_output.enabled


def _notes(got: CollectedResult) -> list[str]:
    """What has to be said besides the output itself."""
    return [wording.stream_failure(got.broke_off)] if got.broke_off else []


def _as_json(call: ToolCall) -> str:
    try:
        return to_json(call.args)
    except (TypeError, ValueError, RecursionError):
        return "{}"
