"""What a model was shown, word for word, for `record: replies`. It is stored beside the outputs, and goes when they go."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from overspill import handles
from overspill.errors import StoreError
from overspill.gate.collect import block_text, join_texts
from overspill.record.events import RecordedReply, Shown, TextShown, now_ms
from overspill.record.ledger import Ledger, logger
from overspill.store.protocols import Shelf
from overspill.text import encoding
from overspill.types import Block

MAX_WAITING_CHARS = 64 << 20
"""Of replies that wait in memory to be stored. What comes on top is not recorded."""


class ReplyRecorder:
    """Stores replies in a thread, so that no call waits for it. A reply that cannot be stored stops no call: it is missing, and
    the log says that some are."""

    def __init__(self, shelf: Shelf, ledger: Ledger, *, is_on: bool) -> None:
        self.has_recorded = False
        self._shelf = shelf
        self._ledger = ledger
        self._writing = ThreadPoolExecutor(1, "overspill-replies") if is_on else None
        self._waiting_chars = 0
        self._has_warned = False
        self._mutex = Lock()

    def add(self, content: Sequence[Block]) -> RecordedReply | None:
        """Where it will be; None if replies are not recorded, or too many wait."""
        if self._writing is None:
            return None
        text, id = join_texts(content, "\n\n"), handles.new()
        if not self._reserve(len(text)):
            self._warn("the store takes them too slowly")
            return None
        try:
            self._writing.submit(self._store, id, text)
        except RuntimeError:  # the session has closed meanwhile
            return None
        self.has_recorded = True
        return RecordedReply(id, sum(block_text(block) is None for block in content))

    def show(self, what: Shown, text: str, content: Sequence[Block] = (), id: str = "") -> str:
        """Record what a model is shown without asking, and return its text. `content`: if there is more than the text."""
        if text:
            reply = self.add(content or [{"type": "text", "text": text}])
            self._ledger.record(TextShown(now_ms(), what, len(text), id, reply))
        return text

    def close(self) -> None:
        """Wait until everything is stored."""
        if self._writing is not None:
            self._writing.shutdown()

    def _reserve(self, chars: int) -> bool:
        with self._mutex:
            if self._waiting_chars + chars > MAX_WAITING_CHARS:
                return False
            self._waiting_chars += chars
            return True

    def _store(self, id: str, text: str) -> None:
        try:
            writer = self._shelf.create(id)
            try:
                writer.append(encoding.encode(text))
                writer.commit()
            except StoreError:
                writer.discard()
                raise
        except StoreError as error:
            self._warn(str(error))
        finally:
            with self._mutex:
                self._waiting_chars -= len(text)

    def _warn(self, why: str) -> None:
        """Once. The log never says what a reply was."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning("Not all replies of session %s are on record: %s", self._shelf.session, why)
