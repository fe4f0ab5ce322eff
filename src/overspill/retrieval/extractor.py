"""Chooses the model that extracts, runs the extraction, and records it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import asdict, replace

from overspill import handles
from overspill.errors import BadRequest, SettingsError
from overspill.extraction import BUILTIN, Cache, Document, Mode, Policy, Progress, extract, extract_with_engine
from overspill.lexical.index import Work
from overspill.models.endpoints import DEFAULT_TIMEOUT, Endpoint, from_environment
from overspill.models.opening import open_model
from overspill.models.protocol import Model, ModelError, Request, Response
from overspill.models.targets import Targets
from overspill.record.events import Fallback, OutputExtracted, OutputInspected, name_type, now_ms
from overspill.record.ledger import Ledger
from overspill.record.logs import log_extraction
from overspill.retrieval.output import StoredOutput, quote_spans
from overspill.retrieval.views import EngineIndexes, TextView
from overspill.settings import Settings
from overspill.sql.library import is_installed
from overspill.text import tokens
from overspill.text.encoding import encode
from overspill.types import Excerpt, Extraction, Kept
from overspill.wording import retrieval as wording

if TYPE_CHECKING:
    from overspill.lexical.select import Selection

_FRAME_BYTES = 200
"""The bytes of a reply around the engine's passages. If that is too few, the passages are fitted again."""


class ExtractionRequest(Struct, frozen=True, kw_only=True):
    """What to extract from a stored output, and with which models."""

    tool: str
    """The retrieval tool that asks, or `extract` for the host."""
    query: str
    mode: Mode = "auto"
    max_tokens: int = 2000
    max_bytes: int | None = None
    """The most bytes of the reply that the answer goes into."""
    turn_model: str | None = None
    """The model of the calling turn, which extracts if no other is configured."""
    targets: tuple[str, ...] = ()
    """Models to ask instead of the configured ones."""


class Extractor:
    """`models` are the host's own, by target name. Others are opened when first needed."""

    def __init__(
        self, settings: Settings, ledger: Ledger, models: Mapping[str, Model], endpoints: Mapping[str, Endpoint]
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._models: dict[str, Model] = dict(models)
        self._given = tuple(models)
        self._endpoints = endpoints
        self._cache = Cache()
        self._indexes = EngineIndexes()
        self._has_counted = False
        self._can_query = settings.preset == "overspill" and is_installed()

    async def extract(
        self, stored: StoredOutput, args_json: str, request: ExtractionRequest, progress: Progress | None = None
    ) -> Extraction:
        op, started = handles.new(), time.perf_counter()
        kept = stored.kept
        models = [self._open_model(name) for name in self.model_names(request)]
        text = await anyio.to_thread.run_sync(stored.sent if models else stored.decoded)
        document = read_document(kept, args_json, text)
        retries, observe = self._settings.extraction_retries, self._ledger.record
        model = Targets(models, retries=retries, op=op, observe=observe) if models else None
        max_bytes = request.max_bytes and max(1, request.max_bytes - _FRAME_BYTES)

        def note(tool: str, is_ok: bool, latency: int, chars: int) -> None:
            self._ledger.record(OutputInspected(now_ms(), op, tool, "ok" if is_ok else "failed", latency, chars))

        try:
            async with model.keep_connected() if model else nullcontext():
                found = await extract(
                    document,
                    request.query,
                    mode=request.mode,
                    model=model,
                    policy=self._policy(request),
                    cache=self._cache,
                    engine=self.select if model else partial(self.select, max_bytes=max_bytes),
                    progress=progress,
                    on_inspection=note,
                )
        except BadRequest:  # nothing has begun, so there is nothing to record
            raise
        except BaseException as error:
            self._record(op, stored, text, request, error, started)
            raise
        self._record(op, stored, text, request, found, started)
        decoding = text.decoding
        before, after = [wording.incomplete(kept)] if kept.missing else [], decoding.remarks if decoding else ()
        is_decoded = decoding is not None and bool(decoding.formats)
        found = _place_in_stored(found, text, kept)
        return replace(found, warnings=(*before, *after, *found.warnings), decoding=decoding if is_decoded else None)

    def model_names(self, request: ExtractionRequest) -> list[str]:
        """The models of the first that names any: request, toolOutput.models, extractionModel, turn, host. Empty: the engine."""
        first = self._settings.extraction_model or request.turn_model or next(iter(self._given), BUILTIN)
        return [name for name in request.targets or self._settings.tool_output.models or (first,) if name != BUILTIN]

    def _open_model(self, name: str) -> Model:
        if name not in self._models:
            try:
                self._models[name] = open_model(name, self._endpoints, self._settings.model_limits)
            except SettingsError as error:
                return _UnavailableModel(name, str(error))
        return self._models[name]

    def _policy(self, request: ExtractionRequest) -> Policy:
        return Policy(
            **asdict(self._settings.tool_output),
            fallback=self._settings.extraction_fallback,
            max_tokens=request.max_tokens,
            max_bytes=request.max_bytes,
            contract=self._settings.wording.contract,
        )

    def refit(self, stored: StoredOutput, request: ExtractionRequest, found: Extraction, max_bytes: int) -> Extraction:
        """The same extraction with at most `max_bytes` of the engine's passages. Keeps matches, wherever they are. Blocks."""
        text = stored.decoded() if found.model == BUILTIN else stored.sent()
        select = partial(self.select, max_bytes=max(1, max_bytes))
        document = read_document(stored.kept, "{}", text)
        shorter = extract_with_engine(document, request.query, request.max_tokens, select, "builtin")
        shorter = _place_in_stored(shorter, text, stored.kept)
        if found.model == BUILTIN:
            return replace(found, text=shorter.text, excerpts=shorter.excerpts)
        return replace(found, passages=shorter)

    def select(
        self, document: Document, query: str, max_tokens: int, max_bytes: int | None = None, work: Work | None = None
    ) -> Selection:
        """Ask the engine. Blocks. A vocabulary takes long to load, and a short answer fits with any vocabulary."""
        from overspill.lexical.rows.totals import suggest_sql  # noqa: PLC0415
        from overspill.lexical.select import select  # noqa: PLC0415  # see EngineIndexes

        def measure(text: str, *, exactly: bool = True) -> int:
            """The larger of its token count and its share of the bytes, as tokens."""
            by_bytes = -(-len(encode(text)) * max_tokens // max_bytes) if max_bytes else 0
            self._has_counted |= exactly
            return max(tokens.count(text, self._settings.model).tokens if exactly else tokens.bound(text), by_bytes)

        index = self._indexes.get(document.sha256, document.reader, work)
        bound = None if self._has_counted or work is not None else partial(measure, exactly=False)
        found = select(index, query, max_tokens=max_tokens, count_tokens=measure, bound_tokens=bound, work=work)
        statement = suggest_sql(index, query) if self._can_query and work is None and not index.is_partial else ""
        longer = f"{found.text} {wording.over_all_rows(statement)}"
        is_short = bool(statement and found.excerpts) and measure(longer, exactly=self._has_counted) <= max_tokens
        return replace(found, text=longer) if is_short else found

    def _record(
        self,
        op: str,
        stored: StoredOutput,
        text: TextView,
        request: ExtractionRequest,
        found: Extraction | BaseException,
        started: float,
    ) -> None:
        latency = round((time.perf_counter() - started) * 1000)
        event = OutputExtracted(now_ms(), op, stored.kept.id, request.tool, request.mode, latency=latency)
        if isinstance(found, BaseException):
            event = replace(event, status="failed", found=False, error_type=name_type(found))
        else:
            spans = ((each.start_byte, each.end_byte) for each in found.excerpts)
            fallback: Fallback = "builtin" if found.model == BUILTIN and self.model_names(request) else ""
            if found.strategy == "truncate":
                fallback = "" if request.mode == "truncate" else "truncate"
            same = ("strategy", "model", "found", "chunks_searched", "chunks_total", "support")
            event = replace(
                event,
                **{name: getattr(found, name) for name in same},
                confidence=round(found.confidence, 3),
                fallback=fallback,
                quotes=quote_spans(spans, text),
                decoded=text.decoding.formats if text.decoding else (),
                warnings=len(found.warnings),
            )
        self.record(event, stored.kept)

    def record(self, event: OutputExtracted, kept: Kept) -> None:
        self._ledger.record(event)
        log_extraction(event, kept.handle)


def read_document(kept: Kept, args_json: str, text: TextView) -> Document:
    return Document(kept.handle, kept.tool, args_json, text.reader, text.size, text.key)


def _place_in_stored(found: Extraction, text: TextView, kept: Kept) -> Extraction:
    """The extraction with its excerpts located in the stored bytes. Marks for secrets do not change line numbers."""
    view = text.positions

    def place(each: Excerpt) -> Excerpt:
        start, end = view.to_stored(each.start_byte), view.to_stored(each.end_byte, is_end=True)
        return replace(each, start_byte=start, end_byte=end)

    if text.key == kept.sha256:
        return found
    size = view.stored_bytes
    passages = None if found.passages is None else _place_in_stored(found.passages, text, kept)
    return replace(
        found, excerpts=tuple(map(place, found.excerpts)), source_hash=kept.sha256, source_size_bytes=size, passages=passages
    )


def configured_endpoints(settings: Settings, environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Where models are served: from the usual environment variables and from the settings, which win. Settings hold no keys."""
    found = from_environment(environ)
    for name, provider in settings.providers.items():
        known = found.get(name)
        found[name] = Endpoint(
            kind=provider.kind or (known.kind if known else "openai-compatible"),
            base_url=provider.base_url or (known.base_url if known else ""),
            api_key=environ.get(provider.api_key_env or "", known.api_key if known else ""),
            timeout=provider.timeout or DEFAULT_TIMEOUT,
        )
    return found


class _UnavailableModel:
    """A target that could not be opened. Asking it fails with the reason, so that the next target or a fallback answers."""

    context_window = 32_768
    max_output_tokens = 4_096

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self._why = why

    async def ask(self, request: Request) -> Response:
        raise ModelError(self._why, is_transient=False)
