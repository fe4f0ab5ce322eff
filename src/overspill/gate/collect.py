"""Turns a tool's result, of any type, into one measured text and the blocks around it. Runs in the job, and decides nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence, Sized
from contextlib import closing
from inspect import isasyncgen, isgenerator
from typing import Any, TypeAlias, TypeVar, cast

import anyio.to_thread

from overspill.errors import RemoteFailure, Unwritable
from overspill.gate.serialise import write_json, write_small
from overspill.store.spool import MEMORY, Spool
from overspill.text import encoding
from overspill.types import Block, Lineage, Media, Output
from overspill.wording import replies as wording

_SNIFFED_BYTES = 64 * 1024  # checked to distinguish text from binary data
_MAX_CHARS_ON_LOOP = 256 * 1024  # encoded without leaving the event loop
_MAX_ENTRIES_ON_LOOP = 1_000  # of a list

T = TypeVar("T")
RunInThread: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function that may block, off the event loop."""


class CollectedResult:
    """A result for the gate to decide on. `content` holds the original blocks, which may pass untouched."""

    is_error = False
    complete = False
    """Whether the whole result, or the failure, has arrived."""
    content: list[Block] | None = None
    original: Any = None
    value: Any = None
    """What the tool returned, unless it is a stream."""
    plain: str | None = None
    """The text, if the tool returned one. It passes as the same object, without a round trip through bytes."""
    texts: Sequence[str] = ()  # in `content`
    boundaries: tuple[int, ...] = ()
    lineage: Lineage | None = None
    error: BaseException | None = None
    broke_off = ""  # why the tool failed, if it had already produced output
    is_hidden = False
    """Whether secrets in the tool's own object keep it from passing."""
    remarks: Sequence[str] = ()
    """Notes about secrets in the result."""
    _spool: Spool | None = None
    _head: bytes | bytearray = b""
    _abandoned = False

    def __init__(self, make_spool: Callable[[], Spool], media: Media = "text") -> None:
        self.media: Media = media
        self._make_spool = make_spool

    @property
    def produced(self) -> int:
        """At least how many bytes it has so far. The tool may still be running."""
        return sum(map(len, self.texts)) if self._spool is None else self._spool.total

    @property
    def in_hand(self) -> Sequence[str] | None:
        """All original texts if they are in memory; None for a stream or large JSON."""
        return (self.plain,) if self.plain is not None else None if self.content is None else self.texts

    @property
    def least_bytes(self) -> int:
        """The minimum number of bytes. Text that is not encoded yet has at least one byte per character."""
        texts = self.in_hand
        return self.spool.total if self._spool is not None or texts is None else sum(map(len, texts))

    @property
    def spool(self) -> Spool:
        """Created on first use, off the event loop if it is large. Most texts are small and pass without it."""
        if self._spool is None:
            spool, starts = self._make_spool(), list[int]()
            for text in self.in_hand or ():
                starts.append(spool.begin_block())
                spool.add_text(text)
            self._spool, self.boundaries = spool, tuple(starts[1:])
        return self._spool

    def take_now(self, result: Any) -> bool:
        """Take a short text without waiting. Most results are short. Return False for anything else."""
        if type(result) is str and len(result) <= _MAX_CHARS_ON_LOOP:
            self.plain = self.value = result
            self.complete = True
        return self.complete

    async def take(self, result: Any, run_in_thread: RunInThread = anyio.to_thread.run_sync) -> None:
        """Take what a tool returned. Long work happens off the event loop, and the tool's own code runs in `run_in_thread`."""
        if isinstance(result, Output):
            self.is_error, self.original = result.is_error, result.original
            self.value = result.content if result.original is None else result.original
            await self._take_blocks(result.content)
        elif result is None:
            self.plain = wording.NO_OUTPUT
        elif isinstance(result, str):
            self.value = result
            await self._take_text(result)
        elif isinstance(result, bytes | bytearray | memoryview):
            self.value = cast("bytes", result)
            await self._take_stream(_slices(memoryview(self.value)))
        elif isinstance(result, AsyncIterator):
            await self._take_stream(cast("AsyncIterator[Any]", result))
        elif isgenerator(result):
            await self._take_generator(cast("Generator[Any, Any, Any]", result), run_in_thread)
        else:
            self.value = result
            await (self._take_blocks if await _run_if_many(lambda: is_blocks(result), result) else self._take_json)(result)
        self.complete = True

    @property
    def notes(self) -> list[str]:
        """What the model needs to know besides the output."""
        waits = self._spool is not None and self._spool.is_waiting
        failures = [wording.stream_failure(self.broke_off)] if self.broke_off else []
        return [*failures, *([wording.NOT_STORED_YET] if waits else []), *self.remarks]

    @property
    def failure(self) -> str:
        return "" if self.error is None else describe(self.error)

    def fail(self, error: BaseException) -> None:
        """Record that the tool raised. The answer is its message, after what it had produced so far."""
        self.is_error, self.error, self.complete = True, error, True
        if self.produced:
            self.broke_off = describe(error)
        else:
            self._spool = None
            self.plain = wording.tool_failure(describe(error))

    def count_notes(self, count: Callable[[str], int]) -> int:
        """The number of tokens of the notes."""
        return sum(map(count, self.notes))

    def discard(self) -> None:
        if self._spool is not None:
            self._spool.discard()

    async def _take_stream(self, chunks: AsyncIterator[Any]) -> None:
        """Collect a stream. An error ends it, but what it had produced is kept."""
        try:
            async for chunk in chunks:
                self._add(chunk, self.spool)
                if self.spool.due:
                    await anyio.to_thread.run_sync(self.spool.flush)
        except Exception as error:  # the tool's code: tell the model about any exception
            self.fail(error)
        finally:
            self.media = _media(bytes(self._head))
            if isasyncgen(chunks):
                await chunks.aclose()

    async def _take_generator(self, chunks: Generator[Any, Any, Any], run_in_thread: RunInThread) -> None:
        """Take each chunk when it is yielded, in case the generator then blocks and is abandoned."""
        spool = self.spool

        def drain() -> None:
            with closing(chunks):
                for chunk in chunks:
                    if self._abandoned:
                        return
                    self._add(chunk, spool)
                    if spool.due:
                        spool.flush()

        try:
            await run_in_thread(drain)
        except Exception as error:  # the tool's code, as above
            self.fail(error)
        finally:
            self._abandoned = True
            self.media = _media(bytes(self._head))

    def _add(self, chunk: Any, spool: Spool) -> None:
        if not isinstance(chunk, str | bytes | bytearray | memoryview):
            raise TypeError(wording.not_a_chunk(type(chunk).__name__))
        data = encoding.encode(chunk) if isinstance(chunk, str) else bytes(cast("bytes", chunk))
        self._head = self._head or bytearray()  # a new object, because the default belongs to the class
        self._head += data[: _SNIFFED_BYTES - len(self._head)]
        spool.add(data)

    async def _take_text(self, content: str) -> None:
        self.plain = content
        if len(content) > _MAX_CHARS_ON_LOOP:
            await anyio.to_thread.run_sync(lambda: self.spool)

    async def _take_blocks(self, blocks: Sequence[Block]) -> None:
        texts = await _run_if_many(lambda: [text for block in blocks if (text := block_text(block)) is not None], blocks)
        self.content, self.texts = list(blocks), texts
        if len(texts) > _MAX_ENTRIES_ON_LOOP or any(len(text) > _MAX_CHARS_ON_LOOP for text in texts):
            await anyio.to_thread.run_sync(lambda: self.spool)

    async def _take_json(self, value: Any) -> None:
        try:
            if (content := write_small(value)) is not None:
                await self._take_text(content)
            else:
                await anyio.to_thread.run_sync(self._add_json, value)
        except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError if the value changes while it is written
            self.discard()
            self._spool = None
            self.plain = wording.not_serialisable(type(value).__name__, str(error))
            self.is_error, self.error = True, Unwritable(self.plain, value)

    def _add_json(self, value: Any) -> None:
        spool = self.spool
        for piece in write_json(value):
            spool.add(piece)
            if spool.due:
                spool.flush()


def is_blocks(result: Any) -> bool:
    if not isinstance(result, list | tuple) or not result:
        return False
    return all(_is_block(block) for block in cast("Sequence[Any]", result))


def _is_block(block: Any) -> bool:
    """Whether it has the shape of an MCP block. Data that merely has such a "type" is measured like any other data."""
    match field(block, "type"):
        case "text":
            return isinstance(field(block, "text"), str)
        case "image" | "audio":
            return isinstance(field(block, "data"), str)
        case "resource":
            return block_text(block) is not None or isinstance(field(field(block, "resource"), "blob"), str)
        case "resource_link":
            return field(block, "uri") is not None
        case _:
            return False


def block_text(block: Block) -> str | None:
    """The text in a block or an embedded resource."""
    kind = field(block, "type")
    content = field(block, "text") if kind == "text" else field(field(block, "resource"), "text") if kind == "resource" else None
    return content if isinstance(content, str) else None


def text_block(content: str) -> Block:
    return {"type": "text", "text": content}


def join_texts(content: Sequence[Block], by: str) -> str:
    return encoding.clean(by.join(part for block in content if (part := block_text(block)) is not None))


def replace_texts(content: Sequence[Block] | None, texts: Sequence[str]) -> list[Block]:
    """Put these texts where the first text was; everything that is not text stays in its place."""
    blocks: list[Block] = [text_block(text) for text in texts]
    if content is None:
        return blocks
    replaced: list[Block] = []
    for block in content:
        if block_text(block) is None:
            replaced.append(block)
        else:
            replaced.extend(blocks)
            blocks = []
    return replaced


def field(block: Any, name: str) -> Any:
    if type(block) is dict:  # most are, and an isinstance check for Mapping takes longer
        return cast("dict[str, Any]", block).get(name)
    return cast("Mapping[str, Any]", block).get(name) if isinstance(block, Mapping) else getattr(block, name, None)


def describe(error: BaseException) -> str:
    """Describe an error for a model: its type and its message. For a group, describe its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(member) for member in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:  # also foreign code: use only the type
        message = ""
    return message if isinstance(error, RemoteFailure) else f"{name}: {message}" if message else name


async def _run_if_many(work: Callable[[], T], entries: object) -> T:
    """Run work on each entry of a list in a thread, if there are many."""
    many = isinstance(entries, Sized) and len(entries) > _MAX_ENTRIES_ON_LOOP
    return await anyio.to_thread.run_sync(work) if many else work()


def _media(head: bytes) -> Media:
    return "text" if encoding.is_text(head[: encoding.complete_length(head)]) else "binary"


async def _slices(data: memoryview) -> AsyncIterator[memoryview]:
    view = data.cast("B") if data.c_contiguous else memoryview(data.tobytes())
    for start in range(0, len(view), MEMORY):
        yield view[start : start + MEMORY]
