"""The files that `overspill extract` searches: those you name, and those in the folders you name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from overspill.cli.terminal import warn
from overspill.errors import BadRequest

_MAX_FILES = 10_000
MAX_COPIED_BYTES = 16 << 20
"""Of files that are searched in one session. It keeps its copies until its end."""


class SearchedFile(Struct, frozen=True):
    """`is_named`: you named the file, and not only a folder that it is in."""

    path: Path
    size: int
    is_named: bool


def list_files(given: Sequence[Path]) -> list[SearchedFile]:
    """In order, each once. In folders, hidden files, links and all that is no regular file are left out."""
    found: dict[Path, SearchedFile] = {}
    for path in given:
        try:
            if path.is_dir():
                for file in _walk(path):
                    found.setdefault(file.path, file)
            else:
                found[path] = SearchedFile(path, path.stat().st_size, is_named=True)
        except OSError:
            found[path] = SearchedFile(path, 0, is_named=True)  # reading it shows why it cannot be read
        if len(found) > _MAX_FILES:
            raise BadRequest(f"{path} has more than {_MAX_FILES:,} files. Name fewer, or a folder in it.")
    return list(found.values())


def _walk(folder: Path) -> list[SearchedFile]:
    found: list[SearchedFile] = []

    def report(problem: OSError) -> None:
        if problem.filename == str(folder):
            raise problem
        warn(f"{problem.filename}: {problem.strerror}.")

    for parent, folders, names in os.walk(folder, onerror=report):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size:
                found.append(SearchedFile(path, status.st_size, is_named=False))
        if len(found) > _MAX_FILES:
            break
    return found


def split_files(files: Sequence[SearchedFile]) -> Iterator[list[SearchedFile]]:
    """Into batches whose copies are on disk at the same time."""
    batch, size = list[SearchedFile](), 0
    for file in files:
        if batch and size + file.size > MAX_COPIED_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch
