"""Answers what the caller was looking for with passages of a kept output instead of a preview, if they are found in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Lock
from typing import Protocol

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import OverspillError
from overspill.gate.intent import Intent
from overspill.gate.kept import BoundedCache
from overspill.gate.replies import ReplyDraft
from overspill.lexical.index import QUICK, Work
from overspill.record.events import Quote
from overspill.settings import Settings
from overspill.text import encoding
from overspill.truncate import Cut
from overspill.types import LIKELY, UNLIKELY, Kept
from overspill.wording import presets as wording

MAX_NOTED_CHARS = 1 << 20
"""The total for the intents of a session's background jobs."""
MAX_SEARCHES = 2
"""How many searches may run at the same time. Each may build an index, which takes memory and time and cannot be interrupted."""
_LONG_KIND = "a long name of a kind"  # a placeholder until the kind is known
_MIN_TOKENS = 64  # less has no room for a passage and its description
_MIN_MODEL_TOKENS = 400  # for a model's answer, its citations and the passages
_MIN_BYTES_PER_TOKEN = 3  # in a reply that must stay below the limit in bytes


class Passages(Struct, frozen=True):
    """What the engine found for a question."""

    text: str
    """The text as a model reads it; empty if there is nothing to show."""
    closing: str
    """Our last line, which says how many records match and whether all are shown."""
    confidence: float
    matched: int
    kind: str
    searched_bytes: int
    left_bytes: int = 0
    """How much of the output was not searched."""
    quotes: tuple[Quote, ...] = ()
    """The stored bytes behind the text."""
    decoded: tuple[str, ...] = ()
    """How the text was decoded, if necessary. The quotes are then passages of the decoded text."""


class Seeker(Protocol):
    def find(self, kept: Kept, question: str, max_tokens: int, work: Work | None) -> Passages:
        """Search the output. Blocks. Raises OverspillError if it is gone or damaged. Keeps its index for the next question."""
        ...

    def record(self, kept: Kept, found: Passages, milliseconds: int) -> None: ...

    async def ask_model(self, kept: Kept, question: str, max_tokens: int, max_bytes: int) -> str:
        """A model's answer with checked citations and passages, as a model reads it. Empty if no model answered."""
        ...


class _Asked(Struct, frozen=True):
    """One search: its subject, its limits and its deadline. Without a deadline, its work is limited."""

    kept: Kept
    intent: Intent
    max_tokens: int
    max_bytes: int | None
    deadline: float | None
    offered: tuple[str, ...]

    @property
    def work(self) -> Work | None:
        return QUICK if self.deadline is None else None

    @property
    def key(self) -> str:
        return f"{self.kept.id} {self.intent!r}"


class _Answer(Struct, frozen=True):
    """The result of a search. If it has no block, there is nothing worth showing."""

    question: str
    found: Passages | None = None
    """None if nothing was found in time."""
    block: str = ""


class IntentAnswers:
    """The intents of background jobs are held in memory only."""

    def __init__(self, count_tokens: Callable[[str], int], search: Seeker) -> None:
        self._search = search
        self._count_tokens = count_tokens
        self._noted: BoundedCache[Intent] = BoundedCache(MAX_NOTED_CHARS, lambda intent: sum(map(len, intent.questions)))
        self._finished: BoundedCache[_Answer] = BoundedCache(
            MAX_NOTED_CHARS, lambda answer: len(answer.question + answer.block) if answer.block else 0
        )
        """Finished answers, some of which came too late for their reply."""
        self._lock = Lock()
        # When the program ends, Python waits for these threads. It stops other threads, which crashes it inside the matcher.
        self._searching = ThreadPoolExecutor(MAX_SEARCHES, "overspill-passages")
        self._waiting = anyio.CapacityLimiter(MAX_SEARCHES)

    def note(self, id: str, intent: Intent | None) -> None:
        """Remember what a background job's caller wants to know from its output."""
        if intent is not None:
            self._noted.put(id, intent)

    def noted(self, id: str) -> Intent | None:
        return self._noted.get(id)

    def close(self) -> None:
        """Let the threads end as soon as they have finished."""
        self._searching.shutdown(wait=False)

    async def answer(self, message: str, kept: Kept, settings: Settings, room: int | None) -> str:
        """The passages of a background job's output that its caller was looking for; empty without any to show."""
        answer = await self._answer(message, kept, self.noted(kept.id), settings, room)
        return answer.block if answer else ""

    async def extend(
        self, drafts: Sequence[ReplyDraft], kept: Kept, intent: Intent | None, settings: Settings, room: int | None
    ) -> Sequence[ReplyDraft]:
        """The drafts, preceded by one with the passages that answer the intent. The last draft is the shortest: only the handle.

        `room` is the number of tokens left in the context.
        """
        shortest = drafts[-1]
        if intent is None:
            return drafts
        answer = await self._answer(shortest.text, kept, intent, settings, room)
        unanswered = [replace(draft, is_unanswered=True) for draft in drafts]
        if answer is None:
            return unanswered
        size, found = kept.size, answer.found
        if found is not None and answer.block:
            shown = found.text
            cut = Cut(shown, "passages", max(0, size.lines - len(shown.splitlines())), max(0, size.chars - len(shown)))
            return [_append(shortest, answer.block, cut), *unanswered]
        if found is None:
            note = wording.not_searched(answer.question, settings.intent_within_secs or 0.0, kept, settings.surface)
            return _append_to_all(unanswered, note, settings.size_cap)
        if found.matched and (not found.text or found.confidence >= _least_confidence(intent)):
            note = wording.not_shown(answer.question, kept, settings.surface)
            return _append_to_all(unanswered, note, settings.size_cap)
        if not intent.is_explicit:
            return drafts
        searched = found.searched_bytes if found.left_bytes else 0
        note = wording.nothing_found(answer.question, found.matched, searched, kept, settings.surface)
        return _append_to_all(drafts, note, settings.size_cap)

    async def _answer(
        self, message: str, kept: Kept, intent: Intent | None, settings: Settings, room: int | None
    ) -> _Answer | None:
        """The answer to the intent, below `message`. None without a question or room for an answer, or if the output is gone."""
        if intent is None or kept.media != "text":
            return None
        limits, max_bytes = [settings.intent_tokens], None  # a reply must respect the limits that its output exceeds
        if room is not None:
            limits.append(room - self._count_tokens(message))
        if settings.effective_token_threshold is not None:
            limits.append(settings.effective_token_threshold)
        if settings.size_cap:
            max_bytes = settings.size_cap - len(encoding.encode(message))
            limits.append(max_bytes // _MIN_BYTES_PER_TOKEN)
        deadline = None if settings.intent_within_secs is None else time.monotonic() + settings.intent_within_secs
        asked = _Asked(kept, intent, min(limits), max_bytes, deadline, settings.surface)
        if asked.max_tokens < _MIN_TOKENS:
            return None
        started = time.perf_counter()
        try:
            asks_model = settings.intent_model and intent.is_explicit and asked.max_tokens >= _MIN_MODEL_TOKENS
            if asks_model:
                most = asked.max_tokens * _MIN_BYTES_PER_TOKEN
                most = most if max_bytes is None else min(most, max_bytes)
                block = await self._search.ask_model(kept, intent.questions[0], asked.max_tokens, most)
                if block and self._count_tokens(block) <= asked.max_tokens:
                    return _Answer(intent.questions[0], Passages("", "", 1.0, 0, "", 0), block)  # not what the engine found
            answer = self._finished.get(asked.key)
            if answer is None or not self._holds(asked, answer.block):
                answer = None
                # A running search continues after the time-out, and its result serves the next reply or question.
                with anyio.move_on_after(settings.intent_within_secs), suppress(TimeoutError):
                    answer = await anyio.to_thread.run_sync(
                        self._search_in_pool, asked, settings.intent_within_secs, abandon_on_cancel=True, limiter=self._waiting
                    )
        except OverspillError:  # a later request for the output reports the problem
            return None
        if answer is not None and answer.found is not None and answer.block:
            self._search.record(kept, answer.found, round((time.perf_counter() - started) * 1000))
        return answer or _Answer(intent.questions[0])

    def _search_in_pool(self, asked: _Asked, seconds: float | None) -> _Answer | None:
        try:
            searching = self._searching.submit(copy_context().run, self._find, asked)
        except RuntimeError:  # the main thread has ended, and pools take nothing more, but a session in another thread works on
            return self._find(asked)
        return searching.result(seconds)

    def _find(self, asked: _Asked) -> _Answer | None:
        """The most confident answer, or the first of several equally confident ones. Blocks."""
        answers, questions, work = list[_Answer](), asked.intent.questions, asked.work
        if work:  # the shorter the output, the more questions: together they may read as much as one, and cut twice as much
            size = max(1, asked.kept.size.bytes)
            questions = questions[: max(1, min(work.read // size, 2 * work.cut // min(size, work.cut)))]
        for question in questions:
            if asked.deadline is not None and time.monotonic() > asked.deadline:
                break
            answers.append(self._ask(asked, question))
        best = max(answers, key=lambda answer: answer.found.confidence if answer.found else 0.0, default=None)
        if best is not None:
            with self._lock:
                self._finished.put(asked.key, best)
        return best

    def _ask(self, asked: _Asked, question: str) -> _Answer:
        kept = asked.kept
        max_tokens = asked.max_tokens
        rest = wording.partly_searched(QUICK.read, kept, asked.offered) if kept.size.bytes > QUICK.read and asked.work else ""
        frame = self._count_tokens(wording.passages(question, "", rest, kept, _LONG_KIND, is_sure=False))
        while True:
            found = self._search.find(kept, question, max(1, max_tokens - frame), asked.work)
            is_sure = found.confidence >= LIKELY
            if not found.text or found.confidence < _least_confidence(asked.intent):
                return _Answer(question, found)
            rest = f"\n{wording.partly_searched(found.searched_bytes, kept, asked.offered)}" if found.left_bytes else ""
            text, closing = encoding.clean(found.text), found.closing + rest
            block = wording.passages(question, text, closing, kept, found.kind, is_sure=is_sure)
            if self._holds(asked, block):
                return _Answer(question, found, block)
            if max_tokens < _MIN_TOKENS:
                return _Answer(question, found)
            max_tokens = max_tokens * 3 // 4

    def _holds(self, asked: _Asked, block: str) -> bool:
        fits = asked.max_bytes is None or len(encoding.encode(block)) <= asked.max_bytes
        return fits and self._count_tokens(block) <= asked.max_tokens


def _least_confidence(intent: Intent) -> float:
    """The least confidence to show an answer. It is higher for a guessed intent, whose answer must probably be right."""
    return UNLIKELY if intent.is_explicit else LIKELY


def _append(draft: ReplyDraft, text: str, cut: Cut | None) -> ReplyDraft:
    return ReplyDraft(("\n\n".join(filter(None, (draft.text, text))),), cut, draft.is_unanswered)


def _append_to_all(drafts: Sequence[ReplyDraft], note: str, limit: int | None) -> Sequence[ReplyDraft]:
    """Appends a note to each draft that stays within the limit in bytes. The last draft is also kept without the note."""
    noted = [(draft, _append(draft, note, draft.cut)) for draft in drafts]
    return [*(long if not limit or len(encoding.encode(long.text)) <= limit else draft for draft, long in noted), drafts[-1]]
