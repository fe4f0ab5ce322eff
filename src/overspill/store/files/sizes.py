"""What each family keeps, noted for later processes, so that their first session need not wait until everything is measured.

It counts what processes had written when they ended. What those wrote that were killed, or still run, is missing until the store
is measured again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import StoreError
from overspill.store.files import hints
from overspill.store.files.layout import Directory
from overspill.store.protocols import KeepLimits
from overspill.text import lenient_json

SIZES = "sizes"
_MAX_WAIT_SECONDS = 5.0  # for a process that counts at the same moment
_MAX_BYTES = 1 << 20  # of the file: more families than fit are measured by each process


class Measurement(Struct, frozen=True):
    """What was kept after these limits were applied."""

    t: float
    """When, in unix seconds."""
    limits: KeepLimits
    families: dict[str, int]

    @property
    def age(self) -> float:
        """In seconds. A clock that was set back makes it old, so that it is not believed for long."""
        passed = time.time() - self.t
        return passed if passed >= 0 else float("inf")


def recall(root: Directory) -> Measurement | None:
    with suppress(OSError, StoreError), hints.open_folder(root) as folder:
        if folder is None:
            return None
        fd = folder.open_file(SIZES)
        try:
            return _parse(fd)
        finally:
            os.close(fd)
    return None


def note(root: Directory, limits: KeepLimits, families: Mapping[str, int]) -> None:
    """If that fails, or another process does it at the same moment, later processes measure again."""
    with suppress(OSError, StoreError), hints.open_folder(root, makes=True) as folder:
        if folder is not None:
            with hints.hold(folder, SIZES, makes=True) as held:
                if held:
                    _write(held[0], Measurement(time.time(), limits, dict(families)))


def add(root: Directory, changes: Mapping[str, int]) -> None:
    """Count what a process has written since it was measured."""
    with suppress(OSError, StoreError), hints.open_folder(root) as folder:
        if folder is not None:
            with hints.hold(folder, SIZES, makes=False, within=_MAX_WAIT_SECONDS) as held:
                if held and (measured := _parse(held[0])):
                    families = {
                        each: measured.families.get(each, 0) + changes.get(each, 0) for each in {**measured.families, **changes}
                    }
                    _write(held[0], replace(measured, families=families))


def _write(fd: int, measured: Measurement) -> None:
    data = msgspec.json.encode(measured)
    hints.rewrite(fd, data if len(data) <= _MAX_BYTES else b"")


def _parse(fd: int) -> Measurement | None:
    return lenient_json.parse(os.pread(fd, _MAX_BYTES, 0), Measurement)
