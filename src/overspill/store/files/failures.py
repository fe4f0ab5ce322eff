"""Turn errors of the operating system into messages that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from overspill.errors import StoreError, StoreFull

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
}
_BROKEN = {
    errno.EROFS: "the file system is read-only. Set storeDir to a place you can write to.",
    errno.ENOENT: "the file or its directory was removed by another program. Open a new session.",
    errno.EEXIST: "a file of that name already exists, and stored outputs are never overwritten.",
    errno.ELOOP: "it is a symbolic link, and those are never followed.",
    errno.ENOTDIR: "a part of the path is a file or a symbolic link where a directory should be.",
}


def to_store_error(doing: str, error: OSError) -> StoreError:
    code = error.errno or 0
    if reason := _FULL.get(code):
        return StoreFull(
            f"Could not {doing}: {reason}. What was stored before is still there; free space or set another storeDir."
        )
    reason = _BROKEN.get(code, f"{error.strerror}. Check storeDir, or set another.")
    return StoreError(f"Could not {doing}: {reason}")


@contextmanager
def explain_failures(doing: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise to_store_error(doing, error) from error
