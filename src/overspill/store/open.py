"""The only place that creates a store. A new kind of store is one file and one line in `STORES`."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from overspill.errors import MissingPackage, SettingsError, describe_type
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Store
from overspill.store.quota import GIB
from overspill.text.regex import regex
from overspill.text.urls import mask_password

_MAX_IDLE_STORES = 64
_SCHEME = regex(r"([A-Za-z][A-Za-z0-9+.-]+):")  # at least two letters, so that a drive letter is a path


_stores: WeakValueDictionary[str, Store] = WeakValueDictionary()
_last_made: deque[Store] = deque(maxlen=_MAX_IDLE_STORES)
_mutex = Lock()


def _get_store(place: object, make: Callable[[], Store]) -> Store:
    """The store that this process has opened at this place, or a new one. Sessions that share it share its quota, and its run or
    lease. Remembers stores in use and the last ones created, by digests of their places: a URL may contain credentials."""
    key = hashlib.sha256(repr(place).encode()).hexdigest()
    with _mutex:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = make()
            _last_made.append(store)
        return store


def _open_files(url: str, run_bytes: int) -> Store:
    parts = urlsplit(url.replace("[", "%5B").replace("]", "%5D"))  # in a host, they would have to be an IPv6 address
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or parts.query or parts.fragment:
        raise SettingsError(
            f"{mask_password(url)!r} is not a usable file URL. Write file:/// and an absolute path, or only the path."
        )
    return file_store(unquote(parts.path), run_bytes)


def file_store(directory: str | None, run_bytes: int) -> Store:
    path = None if directory is None else Path(directory)
    cwd = None if path is None or path.is_absolute() else Path.cwd()
    return _get_store(("file", path, cwd, run_bytes), lambda: FileStore(path, run_bytes=run_bytes))


def _open_memory(url: str, run_bytes: int) -> Store:
    if url.removeprefix("memory:").strip("/"):
        raise SettingsError(f"{mask_password(url)!r} is not a usable memory URL. Write memory: and nothing after it.")
    return memory_store(run_bytes)


@cache
def memory_store(run_bytes: int) -> MemoryStore:
    """One store for the whole process, so that a later session finds what an earlier one kept."""
    return MemoryStore(run_bytes=run_bytes)


def _open_postgres(url: str, run_bytes: int) -> Store:
    try:
        from overspill.store.postgres.store import PostgresStore  # noqa: PLC0415  # most stores are folders
    except ImportError as missing:
        raise MissingPackage(f"The store {mask_password(url)}", "postgres") from missing
    place, tenant = take_tenant(url)
    return _get_store(("postgres", place, tenant, run_bytes), lambda: PostgresStore(place, tenant=tenant, run_bytes=run_bytes))


def take_tenant(url: str) -> tuple[str, str]:
    """The URL without its parameter `tenant`, which is ours and not the database's."""
    place, question, query = url.partition("?")
    given = query.split("&") if question else []
    mine = [each for each in given if each.startswith("tenant=")]
    rest = "&".join(each for each in given if each not in mine)
    return place + ("?" + rest if rest else ""), unquote(mine[-1].removeprefix("tenant=")) if mine else ""


def _open_objects(url: str, run_bytes: int) -> Store:
    try:
        from overspill.store.objects.store import ObjectStore  # noqa: PLC0415  # most stores are folders
    except ImportError as missing:
        raise MissingPackage(f"The store {mask_password(url)}", "s3") from missing
    return _get_store(("objects", url, run_bytes), lambda: ObjectStore(url, run_bytes=run_bytes))


STORES: Mapping[str, Callable[[str, int], Store]] = {
    "file": _open_files,
    "memory": _open_memory,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
    "s3": _open_objects,
    "gs": _open_objects,
    "az": _open_objects,
}
"""For each URL scheme, a function that makes a store from a URL and the number of bytes that one run may write."""


def is_on_server(url: str) -> bool:
    """Whether the store can become unavailable and come back."""
    return STORES.get(url.partition(":")[0]) not in (None, _open_files, _open_memory)


def open_store(url: str | None = None, *, run_bytes: int = 10 * GIB) -> Store:
    """The store at a path or URL. None means the system's temporary directory; a relative path is below the working directory.

    Within a process, the same place gives the same store.
    """
    if not isinstance(url, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"A store's place must be a path or URL as a string, not {describe_type(url)}.")
    if not isinstance(run_bytes, int) or run_bytes < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"`run_bytes` must be a whole number of at least 1, not {run_bytes!r}.")
    shown = mask_password(url or "")
    if not _is_possible(url or ""):
        raise SettingsError(f"{shown!r} cannot be a store's place: it has characters that no file name can have.")
    found = _SCHEME.match(url or "")
    if found is None:
        return file_store(url, run_bytes)
    scheme = found[1].lower()
    if scheme not in STORES:
        known = ", ".join(f"{each}:" for each in STORES)
        raise SettingsError(
            f"{shown!r} names a store of the kind {scheme!r}, which Overspill does not know. Use a path or one of: {known}. "
            f"If you mean a folder of that name, write ./{shown}."
        )
    return STORES[scheme](f"{scheme}:{(url or '')[found.end() :]}", run_bytes)


def _is_possible(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:  # a lone surrogate
        return False
