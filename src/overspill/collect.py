"""A tool's result, whatever its form, becomes one measured text and the blocks round it. Runs inside the job, decides nothing."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from inspect import isasyncgen, isgenerator
from typing import Any, cast

import anyio.to_thread
import msgspec

from overspill import text, wording
from overspill.spool import MEMORY, Spool
from overspill.types import Block, Media, Output

_SNIFF = 64 * 1024
_STEP_CHUNKS = 256
_STEP_SECONDS = 0.02
_BLOCK_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})


class Collected:
    """What the gate decides on. `content` holds the blocks as they came, so that they can pass untouched."""

    def __init__(self, make_spool: Callable[[], Spool]) -> None:
        self.is_error = False
        self.content: list[Block] | None = None
        self.plain: str | None = None
        """The text itself where the tool returned one: it passes as the same object, without a round trip through bytes."""
        self.media: Media = "text"
        self.boundaries: tuple[int, ...] = ()
        self.error: Exception | None = None
        self.broke_off = ""
        """Why the tool ended before its time, when something of its output was there already."""
        self._make_spool = make_spool
        self._spool: Spool | None = None

    @property
    def spool(self) -> Spool:
        """Made when first needed: most texts are small, and pass without being encoded or measured."""
        if self._spool is None:
            self._spool = self._make_spool()
            if self.plain is not None:
                self._spool.add_text(self.plain)
        return self._spool

    async def take(self, result: Any) -> None:
        """Consume whatever a tool returned. Cheap things are done at once, long ones off the event loop."""
        if isinstance(result, Output):
            self.is_error, result = result.is_error, result.content
        if result is None:
            result = wording.NO_OUTPUT
        if isinstance(result, str):
            await self._take_text(result)
        elif isinstance(result, bytes | bytearray | memoryview):
            await self._take_stream(_slices(cast("bytes", result)))
        elif isinstance(result, AsyncIterator):
            await self._take_stream(cast("AsyncIterator[Any]", result))
        elif isgenerator(result):
            await self._take_stream(_stepped(result))
        elif is_blocks(result):
            await self._take_blocks(result)
        else:
            await self._take_json(result)

    @property
    def failure(self) -> str:
        return "" if self.error is None else describe(self.error)

    def fail(self, error: Exception) -> None:
        """The tool raised: its words are the answer, after whatever it had produced until then."""
        self.is_error, self.error = True, error
        if self._spool is not None and self._spool.total:
            self.broke_off = describe(error)
        else:
            self._spool = None
            self.plain = wording.tool_failed(describe(error))

    def discard(self) -> None:
        if self._spool is not None:
            self._spool.discard()

    async def _take_text(self, content: str) -> None:
        self.plain = content
        if len(content) > MEMORY // 4:
            await anyio.to_thread.run_sync(lambda: self.spool)

    async def _take_stream(self, chunks: AsyncIterator[Any]) -> None:
        """An error of the stream is its end: what it had produced stays."""
        head = bytearray()
        try:
            async for chunk in chunks:
                data = text.encode(chunk) if isinstance(chunk, str) else bytes(chunk)
                head += data[: _SNIFF - len(head)]
                self.spool.add(data)
                if self.spool.due:
                    await anyio.to_thread.run_sync(self.spool.flush)
        except Exception as error:  # a tool's own code: whatever it raises is what the model has to know
            self.fail(error)
        finally:
            self.media = _media(bytes(head))
            if isasyncgen(chunks):
                await chunks.aclose()

    async def _take_blocks(self, blocks: Sequence[Block]) -> None:
        self.content = list(blocks)
        starts: list[int] = []
        for block in blocks:
            if (content := block_text(block)) is not None:
                starts.append(self.spool.total)
                await anyio.to_thread.run_sync(self.spool.add_text, content)
        self.boundaries = tuple(starts[1:])

    async def _take_json(self, value: Any) -> None:
        try:
            content = await anyio.to_thread.run_sync(to_json, value) if _is_large(value) else to_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            self.is_error = True
            content = wording.not_serialisable(type(value).__name__, str(error))
        await self._take_text(content)


def to_json(value: Any) -> str:
    """Compact, and nothing lost: key order, big integers and non-ASCII characters as they are."""
    if hasattr(value, "model_dump_json"):
        return value.model_dump_json(by_alias=True)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def is_blocks(result: Any) -> bool:
    if not isinstance(result, list | tuple) or not result:
        return False
    return all(field(block, "type") in _BLOCK_TYPES for block in cast("Sequence[Any]", result))


def block_text(block: Block) -> str | None:
    """The text of a text block or of an embedded text resource."""
    kind = field(block, "type")
    content = field(block, "text") if kind == "text" else field(field(block, "resource"), "text") if kind == "resource" else None
    return content if isinstance(content, str) else None


def field(block: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", block).get(name) if isinstance(block, Mapping) else getattr(block, name, None)


def describe(error: BaseException) -> str:
    """What went wrong, for a model: the kind of error and its own words; of a group, those of its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(member) for member in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    name, message = type(error).__name__, str(error)
    return f"{name}: {message}" if message else name


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return msgspec.to_builtins(value)


def _is_large(value: Any) -> bool:
    return isinstance(value, list | dict) and len(cast("list[Any]", value)) > 1000


def _media(head: bytes) -> Media:
    return "text" if text.is_text(head[: text.whole(head)]) else "binary"


async def _slices(data: bytes) -> AsyncIterator[memoryview]:
    view = memoryview(data).cast("B")
    for start in range(0, len(view), MEMORY):
        yield view[start : start + MEMORY]


async def _stepped(chunks: Iterator[Any]) -> AsyncIterator[Any]:
    """A blocking generator, stepped in worker threads: several chunks at a step while they come quickly."""
    failed: list[Exception] = []

    def step() -> list[Any]:
        batch: list[Any] = []
        until = time.monotonic() + _STEP_SECONDS
        try:
            for chunk in chunks:
                batch.append(chunk)
                if len(batch) >= _STEP_CHUNKS or time.monotonic() > until:
                    break
        except Exception as error:  # raised again below, after what came before it was taken
            failed.append(error)
        return batch

    while batch := await anyio.to_thread.run_sync(step):
        for chunk in batch:
            yield chunk
    if failed:
        raise failed[0]
