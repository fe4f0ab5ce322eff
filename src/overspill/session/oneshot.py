"""Extract from anything at once, without a session of one's own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from overspill.errors import BadRequest
from overspill.extraction import Mode, Progress
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.schema import flatten
from overspill.types import Extraction

Source: TypeAlias = str | bytes | os.PathLike[str] | IO[bytes] | AsyncIterator[bytes | str]
_BLOCK = 1 << 20


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
    """The parts of `source` that answer `query`, each excerpt with its place. Text and bytes are themselves; a path is a file.

    `models` are tried in order, by target name or as objects; without any, the built-in engine answers.
    """
    given = {model.name: model for model in models if not isinstance(model, str)}
    names = [model if isinstance(model, str) else model.name for model in models]
    values = dict(flatten(Settings, settings or Settings()))
    # All of it is searched, and nothing stays when this is over.
    base = Settings.of(values | {("retention",): "session", ("truncation", "max_artifact_size"): None})
    async with Session(base, models=given, endpoints=endpoints) as session:
        kept = await session.keep(_as_bytes(source), name=_name(source))
        return await session.extract(kept.handle, query, mode=mode, max_tokens=max_tokens, models=names, progress=progress)


def _as_bytes(source: Source) -> Any:
    if isinstance(source, os.PathLike):
        return _file(Path(source))
    if hasattr(source, "read"):
        return _blocks(cast("IO[bytes]", source))
    return source


def _name(source: Source) -> str:
    return Path(source).name if isinstance(source, os.PathLike) else "input"


def _file(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from _blocks(file)
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}.") from None


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """A file that was given stays open: whoever opened it closes it."""
    while block := file.read(_BLOCK):
        yield block
