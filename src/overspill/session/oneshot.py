"""Extract from text, bytes, a file or a stream without opening a session yourself."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from overspill.errors import BadRequest, NotText, require
from overspill.extraction import Mode, Progress
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.schema import flatten
from overspill.types import Extraction

Source: TypeAlias = str | bytes | os.PathLike[str] | IO[bytes] | AsyncIterator[bytes | str]
Ask: TypeAlias = Callable[..., Coroutine[Any, Any, Extraction]]
NoteRead: TypeAlias = Callable[[int], None]
"""Called with the number of bytes of a file that were read so far."""
_BLOCK_BYTES = 1 << 20


async def extract(
    source: Source,
    query: str,
    *,
    max_tokens: int = 2000,
    mode: Mode = "auto",
    models: Sequence[str | Model] = (),
    settings: Settings | None = None,
    endpoints: Mapping[str, Endpoint] | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Find the parts of `source` that answer `query`, with the place of each. A `Path` is read as a file, a `str` is the text.

    Compressed text, text in other encodings and PDFs are decoded first; `decoding` of the result says how. `models` are tried in
    order and may be target names or objects. Without models, the built-in engine answers. Raises NotText if there is no text.
    """
    async with open_extraction(query, mode=mode, models=models, settings=settings, endpoints=endpoints) as ask:
        return await ask(source, max_tokens=max_tokens, progress=progress)


@asynccontextmanager
async def open_extraction(
    query: str,
    *,
    mode: Mode = "auto",
    models: Sequence[str | Model] = (),
    settings: Settings | None = None,
    endpoints: Mapping[str, Endpoint] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> AsyncGenerator[Ask]:
    """Like `extract`, for many sources. Its copies of them stay on disk until the end. `secrets` are as for `Session`."""
    require("settings", settings, (Settings, type(None)), "Settings(…)")
    require("models", models, (list, tuple), "a list of names or models")
    given = {model.name: model for model in models if not isinstance(model, str)}
    names = [model if isinstance(model, str) else model.name for model in models]
    values = dict(flatten(Settings, settings or Settings()))
    # Search everything, and leave nothing behind.
    base = Settings.of(values | {("retention",): "session", ("truncation", "max_artifact_size"): None})
    async with Session(base, models=given, endpoints=endpoints, preload=False, secrets=secrets) as session:

        async def ask(
            source: Source, *, max_tokens: int, progress: Progress | None = None, note_read: NoteRead = lambda _: None
        ) -> Extraction:
            data, name, shown = source, "input", "The input"
            if isinstance(source, os.PathLike):
                data, name, shown = _file(Path(source), note_read), Path(source).name, str(source)
            elif hasattr(source, "read"):
                data = _blocks(cast("IO[bytes]", source), note_read)
            kept = await session.keep(data, name=name)
            try:
                return await session.extract(
                    kept.handle, query, mode=mode, max_tokens=max_tokens, models=names, progress=progress
                )
            except NotText as error:
                raise NotText(error.what, error.advice, shown) from None

        yield ask


def _file(path: Path, note_read: NoteRead) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from _blocks(file, note_read)
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}.") from None


def _blocks(file: IO[bytes], note_read: NoteRead) -> Iterator[bytes]:
    """The content of a file in blocks. Its owner closes it."""
    done = 0
    while block := file.read(_BLOCK_BYTES):
        done += len(block)
        note_read(done)
        yield block
