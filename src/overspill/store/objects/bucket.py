"""The objects below one prefix, with a limit on every wait, and the service's failures in our words."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Lock
from typing import Any

from msgspec import Struct
from obstore import exceptions
from obstore.store import from_url

from overspill.errors import SettingsError, StoreAway, StoreError
from overspill.text.urls import mask_password

_MAX_RETRIES = 2
_MAX_RETRY_SECONDS = 30
_MIN_WAIT_SECONDS = 1.0  # a call that fails faster than this needs no pause after it
_REST_AFTER_WAIT = 2  # the pause after a call that got no answer, in multiples of how long it waited
_MAX_REST_SECONDS = 10.0  # less than a lease, which can then be renewed soon after the service is back
_MAX_PARALLEL_READS = 8
_PAGE_OBJECTS = 1_000
_MAX_REASON_CHARS = 200


_used_by: dict[str, int] = {}
"""The process that has used the library, if one has. In a forked child, every call would wait forever."""


class Item(Struct, frozen=True):
    """One object, as a listing shows it."""

    key: str
    size: int
    modified: float
    """Unix seconds, by the clock of the service, which counts whole seconds."""


class Bucket:
    """Addresses and credentials come from the environment, in the variables that the service's own tools use. So does whether
    plain HTTP is allowed, which is why the library's own limits stay: 30 seconds for a request, 5 for a connection."""

    def __init__(self, url: str) -> None:
        self.url = mask_password(url)
        self._failure = ""
        self._no_attempt_before = 0.0
        self._mutex = Lock()
        retry: Any = {"max_retries": _MAX_RETRIES, "retry_timeout": timedelta(seconds=_MAX_RETRY_SECONDS)}
        try:
            if "://" not in url:  # the library's message would quote it
                raise ValueError("it has no //")
            if "?" in url or "#" in url:
                raise ValueError("it has parameters")
            if "@" in url.partition("://")[2].partition("/")[0]:
                raise ValueError("credentials come from the environment")
            self._objects: Any = from_url(url, retry_config=retry)
        except (exceptions.BaseError, ValueError) as error:
            raise SettingsError(
                f"{self.url!r} is not a usable address of a bucket ({_reason(error)}). Write s3://bucket/prefix, "
                "gs://bucket/prefix or az://container/prefix."
            ) from None

    def put(self, key: str, data: bytes | memoryview = b"") -> None:
        with self._explain(f"write to {self.url}"):
            self._objects.put(key, data, use_multipart=False)

    def create(self, key: str, data: bytes | memoryview = b"") -> bool:
        """Create an object. Returns False if it already exists."""
        with self._explain(f"write to {self.url}"), suppress(exceptions.AlreadyExistsError):
            self._objects.put(key, data, mode="create", use_multipart=False)
            return True
        return False

    def replace(self, key: str, data: bytes, version: str) -> bool:
        """Replace an object. Returns False if it has changed since that version."""
        changed = (exceptions.PreconditionError, exceptions.AlreadyExistsError, FileNotFoundError)
        with self._explain(f"write to {self.url}"), suppress(*changed):
            self._objects.put(key, data, mode={"e_tag": version}, use_multipart=False)
            return True
        return False

    def get(self, key: str) -> tuple[bytes, str] | None:
        """The object's bytes, and its version for `replace`."""
        with self._explain(f"read from {self.url}"), suppress(FileNotFoundError):
            found = self._objects.get(key)
            return bytes(found.bytes()), str(found.meta["e_tag"])
        return None

    def get_all(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of these objects, in the order of the keys; None for a missing one. Several are fetched at a time."""
        with ThreadPoolExecutor(_MAX_PARALLEL_READS) as pool:
            for found in pool.map(self.get, keys):
                yield found[0] if found else None

    def range(self, key: str, start: int, end: int) -> bytes | None:
        with self._explain(f"read from {self.url}"), suppress(FileNotFoundError):
            return bytes(self._objects.get_range(key, start=start, end=end))
        return None

    def find(self, key: str) -> Item | None:
        with self._explain(f"read from {self.url}"), suppress(FileNotFoundError):
            return _item(self._objects.head(key))
        return None

    def list(self, prefix: str, after: str = "") -> Iterator[Item]:
        """The objects whose keys have this prefix, ordered by key and fetched in pages; only keys after `after`, if given."""
        with self._explain(f"list {self.url}"):
            for page in self._objects.list(prefix, offset=after or None, chunk_size=_PAGE_OBJECTS):
                yield from map(_item, page)

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            with self._explain(f"remove from {self.url}"), suppress(FileNotFoundError):
                self._objects.delete(list(keys))

    @contextmanager
    def _explain(self, doing: str) -> Generator[None]:
        """After one call has timed out, others fail immediately for a while, and then one at a time tries again. That way, only
        one caller waits for a service that accepts connections but does not answer."""
        if _used_by.setdefault("pid", os.getpid()) != os.getpid():
            raise StoreError(
                f"Could not {doing}: this process was forked from one that had used a bucket, and the library for buckets does "
                "not work after a fork. Start the process with spawn or forkserver, or use the store only after forking."
            )
        started = time.monotonic()
        if failure := self._failure:
            with self._mutex:
                if started < self._no_attempt_before:
                    raise _away_error(doing, failure)
                # This caller tries the service, for as long as the library allows. The others fail until it has finished.
                self._no_attempt_before = started + _MAX_RETRY_SECONDS
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            now = time.monotonic()
            with self._mutex:
                if now - started < _MIN_WAIT_SECONDS:
                    self._no_attempt_before = now
                else:
                    self._failure = _reason(error)
                    self._no_attempt_before = now + min(_REST_AFTER_WAIT * (now - started), _MAX_REST_SECONDS)
            raise _away_error(doing, _reason(error)) from error
        except BaseException:
            self._failure = ""
            raise
        self._failure = ""


def _away_error(doing: str, reason: str) -> StoreAway:
    return StoreAway(
        f"Could not {doing}: it does not answer, or refuses ({reason}). Nothing that was stored is lost. "
        "Try again; if this persists, check that `store` names the right bucket and that your credentials may use it."
    )


def _item(meta: Any) -> Item:
    return Item(meta["path"], meta["size"], meta["last_modified"].timestamp())


def _reason(error: Exception) -> str:
    """The first line, without the details of the service's answer."""
    return next(iter(str(error).splitlines()), "")[:_MAX_REASON_CHARS] or type(error).__name__
