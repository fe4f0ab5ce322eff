"""The heart of Overspill: a result passes untouched, or is stored whole and replaced by something small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio.to_thread
from msgspec.structs import replace

from overspill import handles
from overspill.budget import ContextBudget
from overspill.errors import OverspillError, StoreError
from overspill.gate import replies
from overspill.gate.collect import CollectedResult, block_text, join_texts, replace_texts, text_block
from overspill.gate.decide import Keep, Pass, Room, Shorten, Verdict, decide, deciding_bytes, keeps_nothing, passes_for_sure
from overspill.gate.images import SealedKept, blob_size, decode_blob
from overspill.gate.intent import find_intent
from overspill.gate.kept import MAX_INLINE_BLOB_BYTES, KnownOutputs, LateOutput, ShownOutputs, describe_kept
from overspill.gate.off_loop import MAX_BYTES_ON_LOOP, run_off_loop
from overspill.gate.passages import IntentAnswers, Seeker
from overspill.gate.redacting import hide, open_source, redact_result
from overspill.gate.replies import ReplyDraft
from overspill.gate.serialise import write_arguments
from overspill.record.events import OutputStored, now_ms
from overspill.record.ledger import Ledger
from overspill.redaction.policy import Redaction
from overspill.settings import Settings
from overspill.store.meter import size_of
from overspill.store.protocols import Shelf
from overspill.store.spool import SealedOutput, Spool
from overspill.text import encoding, tokens
from overspill.text.names import describe_source
from overspill.types import Block, Kept, Reason, Reply, Size, ToolCall
from overspill.wording import replies as wording


class Gate:
    """Sits between a session's tools and its model."""

    def __init__(
        self,
        settings: Settings,
        shelf: Shelf,
        ledger: Ledger,
        budget: ContextBudget | None,
        known: KnownOutputs,
        search: Seeker,
        redaction: Redaction,
    ) -> None:
        self.settings, self.redaction = settings, redaction
        self.kept, self.checkpoints, self.held, self.names = known.kept, known.checkpoints, known.held, known.names
        self.arguments = known.arguments
        self._count_tokens: Callable[[str], int] = lambda shown: tokens.count(shown, settings.model).tokens
        self.intents = IntentAnswers(self._count_tokens, search)
        self._shown = ShownOutputs(shelf, ledger)
        self._shelf = shelf
        self.ledger, self.budget = ledger, budget

    async def deliver(self, call: ToolCall, collected: CollectedResult, settings: Settings, *, for_program: bool) -> Reply:
        """Decide, reserve room, store, and word the reply. `settings`, here and below, are the tool's."""
        passes = for_program and collected.media == "text"
        # Over the limit in bytes, keep it without measuring it first.
        can_keep = self.budget is None and collected.media == "text" and not passes
        is_kept = can_keep and 0 < settings.size_cap < collected.least_bytes and not keeps_nothing(settings)
        if self.redaction.is_on:
            await redact_result(collected, self.redaction, call, may_pass=not is_kept)
        texts = collected.in_hand
        has_room = passes or self.budget is None
        if texts is not None and passes_for_sure(texts, settings) and (has_room or self._finds_room(collected, settings)):
            reply = self._reply_in_hand(collected)
        elif is_kept:
            reply = await self._keep_and_word(call, collected, "size_cap", settings)
        else:
            size = await run_off_loop(lambda: collected.spool.size, collected.least_bytes)
            match decide(size, settings) if passes else self._verdict(collected, size, settings):
                case Keep(reason) if passes:
                    reply = await self._keep_and_pass(call, collected, size, reason)
                case Shorten() if not passes:
                    reply = await self._truncate(call, collected, size, settings)
                case Keep(reason):
                    reply = await self._keep_and_word(call, collected, reason, settings)
                case _:
                    reply = await self._pass_on(call, collected, size, settings)
        return reply if collected.content is None or passes else await self._keep_large_blobs(call, reply, settings)

    async def keep(self, call: ToolCall, collected: CollectedResult, reason: Reason) -> Kept:
        """Store a finished output. Raise StoreError if no part of it could be stored."""
        kept, sealed = await anyio.to_thread.run_sync(self._seal, call, collected, reason)
        self._record(call, kept, sealed)
        return kept

    def _record(self, call: ToolCall, kept: Kept, sealed: SealedOutput) -> None:
        self.ledger.record(OutputStored(now_ms(), kept, call.kind))
        self.kept.add(kept)
        self.checkpoints.put(kept.id, sealed.checkpoints)
        self.arguments.put(kept.id, hide(self.redaction, call, write_arguments(call)))

    async def keep_for_later(self, call: ToolCall, collected: CollectedResult, settings: Settings) -> LateOutput:
        """Keep a result that finished in the background. If it cannot be stored, hold as much as possible in memory."""
        await redact_result(collected, self.redaction, call, may_pass=False)
        blocks = await self._other_blocks(call, collected, settings)
        try:
            return LateOutput(blocks, await self.keep(call, collected, "background"))
        except OverspillError as error:
            rescued = collected.spool.rescue(self.held.room, str(error))
            if rescued is None:
                return LateOutput(blocks, error=wording.lost_output(collected.spool.total, str(error)))
            data, sealed = rescued
            self.held.put(collected.spool.id, data)
            kept = self._describe(call, collected, sealed, "background")
            self.kept.unstored.put(kept.id, kept)
            return LateOutput(blocks, kept, kept.missing)

    async def _other_blocks(self, call: ToolCall, collected: CollectedResult, settings: Settings) -> list[Block]:
        """The blocks of a result other than its text. Stores blobs too large for a reply or for memory, and notes where."""
        blocks: list[Block] = []
        for block in collected.content or ():
            if block_text(block) is not None:
                continue
            size = blob_size(block)
            if size > min(settings.max_inline_blob, MAX_INLINE_BLOB_BYTES - self.held.inline_blob_bytes):
                blocks.append(text_block((await self._keep_blob(call, block, settings))[1]))
            else:
                self.held.inline_blob_bytes += size
                blocks.append(block)
        return blocks

    def reserve(self, candidates: Sequence[ReplyDraft]) -> tuple[ReplyDraft, bool]:
        """Return the first draft that fits into the context, or else the last one, and whether it fits."""
        if self.budget is None:
            return candidates[0], True
        for answer in candidates:
            if self.budget.reserve(self._count_tokens(answer.text)):
                return answer, True
        self.budget.charge(self._count_tokens(candidates[-1].text))
        return candidates[-1], False

    @property
    def room(self) -> int | None:
        """How many tokens the next reply may have."""
        return None if self.budget is None else self.budget.room

    def _finds_room(self, collected: CollectedResult, settings: Settings) -> bool:
        """Reserves room for texts within all other limits. Returns False if there is no room, or if counting would take long."""
        if self.budget is None or keeps_nothing(settings) or collected.least_bytes > MAX_BYTES_ON_LOOP:
            return self.budget is None
        shown = "".join(collected.in_hand or ())
        return self.budget.reserve(self._count_tokens(shown) + collected.count_notes(self._count_tokens))

    def _verdict(self, collected: CollectedResult, size: Size, settings: Settings) -> Verdict:
        if collected.media == "binary":
            return Keep("binary")
        room = None if self.budget is None else Room(now=self.budget.room, alone=self.budget.capacity)
        verdict = decide(size, settings, room)
        if collected.spool.failure and not (collected.in_hand is not None and keeps_nothing(settings)):
            # The output is too large to store, or the store failed. An incomplete output cannot pass.
            return verdict if isinstance(verdict, Keep) else Keep("size_cap")
        if isinstance(verdict, Pass) and self.budget is not None and not keeps_nothing(settings):
            need = size.tokens + collected.count_notes(self._count_tokens)
            return verdict if self.budget.reserve(need) else Keep("reserve_failed")
        return verdict

    async def _pass_on(self, call: ToolCall, collected: CollectedResult, size: Size, settings: Settings) -> Reply:
        fits = True
        if self.budget is not None and keeps_nothing(settings):
            need = size.tokens + collected.count_notes(self._count_tokens)
            if not (fits := self.budget.reserve(need)):
                self.budget.charge(need)
        await self._take_in_hand(call, collected, size)
        if not collected.spool.in_memory:
            await anyio.to_thread.run_sync(collected.spool.discard)
        return replace(self._reply_in_hand(collected), fits=fits)

    async def _keep_and_pass(self, call: ToolCall, collected: CollectedResult, size: Size, reason: Reason) -> Reply:
        """Store an output and pass it on. It passes even if it cannot be stored, because the program already has it."""
        kept: Kept | None = None
        with suppress(StoreError):
            kept = await self.keep(call, collected, reason)
        await self._take_in_hand(call, collected, size)
        return replace(self._reply_in_hand(collected), kept=kept)

    async def _take_in_hand(self, call: ToolCall, collected: CollectedResult, size: Size) -> None:
        """Read an output that is only in the spool: a stream, or large JSON."""
        if collected.in_hand is None:
            try:
                collected.plain = encoding.decode(await run_off_loop(lambda: collected.spool.read(0, size.bytes), size.bytes))
                collected.value = collected.plain if collected.value is None else collected.value
                await redact_result(collected, self.redaction, call)
            except StoreError as error:
                collected.is_error, collected.plain = True, wording.unsaved_output(collected.spool.total, str(error))

    def _reply_in_hand(self, collected: CollectedResult) -> Reply:
        content, shown, passed = replies.show_in_hand(collected)
        return self._reply(content, shown, collected, passed=passed, value=collected.value)

    async def _truncate(self, call: ToolCall, collected: CollectedResult, size: Size, settings: Settings) -> Reply:
        read = partial(open_source, self.redaction, call, collected, size, "")
        cut = await run_off_loop(lambda: read()[0].truncate_to_bytes(settings.size_cap, settings), size.bytes)
        facts = replies.describe_truncation(cut, size, self._count_tokens, None)
        answer, fits = self.reserve([ReplyDraft((encoding.clean(cut.text), *collected.notes))])
        if not collected.spool.in_memory:
            await anyio.to_thread.run_sync(collected.spool.discard)
        return self._reply(replace_texts(collected.content, answer.blocks), answer.text, collected, fits=fits, truncation=facts)

    async def _keep_and_word(self, call: ToolCall, collected: CollectedResult, reason: Reason, settings: Settings) -> Reply:
        sealed: SealedOutput | None = None
        kept: Kept | None = None
        unstored = ""
        blobs: list[SealedKept] = []

        def store_and_word() -> tuple[list[ReplyDraft], Size]:
            nonlocal sealed, kept, unstored, blobs
            if settings.repeats == "stub" and (kept := self._shown.find(call, collected)) is not None:
                collected.spool.discard()
                source = describe_source(call.name, call.args)
                return [ReplyDraft((settings.wording.repeated_output(kept, source, settings.surface),))], kept.size
            try:
                sealed = collected.spool.seal()
                kept, unstored = self._describe(call, collected, sealed, reason), collected.spool.failure
            except StoreError as error:
                unstored = str(error)
            size = collected.spool.size if sealed is None else sealed.size
            if unstored and collected.plain is not None:  # text that is not stored has not been measured
                size = size_of(collected.plain, settings.model)
            sha256 = sealed.sha256 if sealed and not unstored else ""
            source, collected.remarks = open_source(self.redaction, call, collected, size, sha256)
            if collected.media == "binary":
                return replies.draft_binary(kept, collected.spool, unstored, self.settings), size
            if unstored:
                return replies.draft_incomplete(kept, collected.spool.total, unstored, source, settings), size
            assert kept is not None
            drafts, blobs = replies.draft(kept, source, settings, partial(self._store_blob, call, settings))
            return drafts, size

        try:
            candidates, size = await anyio.to_thread.run_sync(store_and_word)
        finally:
            for each, described in ([(kept, sealed)] if kept and sealed else []) + blobs:
                self._record(call, each, described)
        intent = find_intent(self, call, settings)
        if intent and kept and not unstored and not (sealed is None and self._shown.has_answered(kept, intent)):
            candidates = await self.intents.extend(candidates, kept, intent, settings, self.room)
        answer, fits = self.reserve([replace(each, blocks=(*each.blocks, *collected.notes)) for each in candidates])
        if kept is not None:
            self._shown.note(kept, None if answer.is_unanswered else intent)
        facts = replies.describe_truncation(answer.cut, size, self._count_tokens, kept and kept.artifact_id)
        return self._reply(
            replace_texts(collected.content, answer.blocks), answer.text, collected, fits=fits, kept=kept, truncation=facts
        )

    async def _keep_large_blobs(self, call: ToolCall, reply: Reply, settings: Settings) -> Reply:
        """Store images, audio and binary resources that are too large for the reply. Others stay in their places."""
        if keeps_nothing(settings) or not any(blob_size(block) > settings.max_inline_blob for block in reply.content):
            return reply
        content: list[Block] = []
        kept, fits = reply.kept, reply.fits
        for block in reply.content:
            if blob_size(block) > settings.max_inline_blob:
                found, shown = await self._keep_blob(call, block, settings)
                answer, fitted = self.reserve([ReplyDraft((shown,))])
                kept, fits, block = kept or found, fits and fitted, text_block(answer.text)
            content.append(block)
        text = join_texts(content, "\n\n")
        return replace(reply, text=text, content=content, kept=kept, fits=fits, passed=False, value=None)

    async def _keep_blob(self, call: ToolCall, block: Block, settings: Settings) -> tuple[Kept | None, str]:
        collected = CollectedResult(partial(self.new_spool, settings), "binary")
        await anyio.to_thread.run_sync(lambda: collected.spool.add(decode_blob(block)))
        try:
            kept = await self.keep(call, collected, "binary")
        except StoreError as error:
            return None, wording.unsaved_output(collected.spool.total, str(error))
        drafts = await anyio.to_thread.run_sync(replies.draft_binary, kept, collected.spool, kept.missing, self.settings, block)
        return kept, drafts[0].text

    def _store_blob(self, call: ToolCall, settings: Settings, data: bytes) -> SealedKept:
        """Store a blob. Blocks. The caller must record the blob."""
        collected = CollectedResult(partial(self.new_spool, settings), "binary")
        collected.spool.add(data)
        return self._seal(call, collected, "binary")

    def _seal(self, call: ToolCall, collected: CollectedResult, reason: Reason) -> SealedKept:
        sealed = collected.spool.seal()
        return self._describe(call, collected, sealed, reason), sealed

    def _describe(self, call: ToolCall, collected: CollectedResult, sealed: SealedOutput, reason: Reason) -> Kept:
        kept = describe_kept(call, collected, sealed, reason, self._shelf.session, self.names.give(collected.spool.id))
        made = kept.lineage and replace(kept.lineage, query=hide(self.redaction, call, kept.lineage.query))
        return replace(kept, source=hide(self.redaction, call, kept.source), lineage=made)

    def _reply(self, content: list[Block], shown: str, collected: CollectedResult, **facts: Any) -> Reply:
        model, original = self.settings.model, collected.original
        return Reply(text=shown, content=content, is_error=collected.is_error, model=model, original=original, **facts)

    def new_spool(self, settings: Settings, new_id: Callable[[], str] = handles.new) -> Spool:
        most, inlet = settings.truncation.max_artifact_size, self.redaction.open_inlet(settings) if self.redaction.is_on else None
        return Spool(self._shelf, new_id(), most, settings.model, deciding_bytes(settings), inlet)
