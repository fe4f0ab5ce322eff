"""A temporary folder. If the process that made it dies, the next one that makes such a folder removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from overspill.store.files.lock import try_lock


class ScratchFolder:
    """Held by a lock on the folder itself, which the system releases when its holder dies."""

    def __init__(self, prefix: str) -> None:
        for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            with suppress(OSError):  # it is another user's, not a folder, or being removed
                fd = _open(path)
                try:
                    if os.fstat(fd).st_uid == os.getuid() and try_lock(fd):
                        shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(fd)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            # Another process may have found it before it was locked and removed it as abandoned.
            with suppress(FileNotFoundError):
                self._fd = _open(self.path)
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                if self.path.exists():
                    return
                os.close(self._fd)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._fd)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
