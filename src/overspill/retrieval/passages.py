"""Find what a caller was looking for in a stored output, with the built-in engine or a model, and record what it was shown."""

from __future__ import annotations

from functools import partial

import anyio.to_thread
from msgspec import Struct

from overspill import handles
from overspill.extraction import BUILTIN
from overspill.gate.passages import Passages
from overspill.lexical.index import Work
from overspill.reading import Bound
from overspill.record.events import OutputExtracted, now_ms
from overspill.retrieval.extracted import format_abstract
from overspill.retrieval.extractor import ExtractionRequest, Extractor, read_document
from overspill.retrieval.outputs import StoredOutputs
from overspill.retrieval.quotes import quote_spans
from overspill.types import Kept

_TOOL = "intent"
"""What the record names in place of a retrieval tool."""


class PassageSearch(Struct, frozen=True):
    """Shares the engine's indexes with the retrieval tools: what one builds, the other uses."""

    outputs: StoredOutputs
    extractor: Extractor

    def find(self, kept: Kept, question: str, max_tokens: int, work: Work | None) -> Passages:
        text = self.outputs.recent(kept.handle).decoded()
        document = read_document(kept, "{}", text)
        found = self.extractor.select(document, question, max_tokens, work=work)
        passages, closing = "", ""
        if found.excerpts:
            passages, _, closing = found.text.rpartition("\n")
        quotes = quote_spans(((each.start_byte, each.end_byte) for each in found.excerpts), text.reader)
        formats = text.decoding.formats if text.decoding else ()
        searched, left = found.searched_bytes, max(0, text.size.bytes - found.searched_bytes)
        return Passages(passages, closing, found.confidence, found.matched, found.kind, searched, left, quotes, formats)

    async def ask_model(self, kept: Kept, question: str, max_tokens: int, max_bytes: int) -> str:
        request = ExtractionRequest(tool=_TOOL, query=question, max_tokens=max_tokens, max_bytes=max_bytes)
        if not self.extractor.has_model(request):
            return ""
        stored = await anyio.to_thread.run_sync(self.outputs.recent, kept.handle)
        found = await self.extractor.extract(stored, "{}", request)
        if found.model == BUILTIN:
            return ""
        refit = partial(self.extractor.refit, stored, request)
        fit = partial(format_abstract, kept, found, Bound(max_bytes), stored.shown_id, refit=refit)
        return (await anyio.to_thread.run_sync(fit)).text

    def record(self, kept: Kept, found: Passages, milliseconds: int) -> None:
        event = OutputExtracted(
            now_ms(),
            handles.new(),
            kept.id,
            _TOOL,
            "auto",
            strategy="builtin",
            model=BUILTIN,
            confidence=round(found.confidence, 3),
            chunks_searched=1,
            chunks_total=1,
            latency=milliseconds,
            quotes=found.quotes,
            decoded=found.decoded,
        )
        self.extractor.record(event, kept)
