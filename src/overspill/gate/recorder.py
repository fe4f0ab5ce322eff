"""Records what a model was shown, word for word, for `record: replies`. Stored next to the outputs, and removed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from overspill import handles
from overspill.errors import StoreError
from overspill.gate.collect import block_text, join_texts
from overspill.record.events import MAX_REPLY_BYTES, RecordedReply, Shown, TextShown, now_ms
from overspill.record.ledger import Ledger
from overspill.record.logs import logger
from overspill.store.protocols import Shelf
from overspill.text import encoding, tokens
from overspill.types import Block


class ReplyRecorder:
    """Stores replies in a thread, without delaying calls. Replies that come during a write are stored together, to keep up with a
    slow disk or server. A reply that cannot be stored does not stop a call: it is missing, and the log says so."""

    def __init__(self, shelf: Shelf, ledger: Ledger, redact: Callable[[str], str], *, is_on: bool) -> None:
        self.is_on = is_on
        self.has_recorded = False
        self._shelf = shelf
        self._ledger = ledger
        self._redact = redact
        self._storing = ThreadPoolExecutor(1, "overspill-replies") if is_on else None
        self._id = ""
        self._next = bytearray()
        """The replies to store next, under that id."""
        self._has_warned = False
        self._mutex = Lock()

    def add(self, content: Sequence[Block]) -> RecordedReply | None:
        """The place where the reply will be stored; None if replies are not recorded or memory is full."""
        if self._storing is None:
            return None
        data = encoding.encode(self._redact(join_texts(content, "\n\n")))
        with self._mutex:
            if len(self._next) + len(data) > MAX_REPLY_BYTES:
                self._warn("the store takes them too slowly, or one is too large.")
                return None
            if not self._id:
                try:
                    self._storing.submit(self._store_next)
                except RuntimeError:  # the session has closed in the meantime
                    return None
                self._id = handles.new()
            reply = RecordedReply(self._id, len(self._next), len(data), sum(block_text(block) is None for block in content))
            self._next += data
        self.has_recorded = True
        return reply

    def show(self, what: Shown, text: str, content: Sequence[Block] = (), id: str = "") -> str:
        """Record a message that the model did not request, and return its text. `content`: its blocks, if it is not only text."""
        if text:
            reply = self.add(content or [{"type": "text", "text": text}])
            counted = tokens.count(text).tokens if what == "output" else 0
            self._ledger.record(TextShown(now_ms(), what, len(text), id, reply, counted))
        return text

    def close(self) -> None:
        """Wait until everything is stored."""
        if self._storing is not None:
            self._storing.shutdown()

    def _store_next(self) -> None:
        with self._mutex:
            id, data = self._id, self._next
            self._id, self._next = "", bytearray()
        try:
            writer = self._shelf.create(id)
            try:
                writer.append(memoryview(data))
                writer.commit()
            except StoreError:
                writer.discard()
                raise
        except StoreError as error:
            self._warn(str(error))

    def _warn(self, why: str) -> None:
        """Warn once. The log never contains a reply."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning("Not all replies of session %s are on record: %s", self._shelf.session, why)
