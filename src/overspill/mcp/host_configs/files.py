"""Read a client's file, and replace it atomically, with a backup, and only if nothing else has changed it."""

from __future__ import annotations

import glob
import os
import stat
import tempfile
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.settings.files import read_text

MAX_BYTES = 32 * 1024 * 1024
TOO_LARGE = "is larger than {most:,} bytes. That is too large for a client's configuration."


class ClientFile(Struct, frozen=True):
    """`path` is the real file; `given` may be a symbolic link to it."""

    given: Path
    path: Path
    text: str

    @property
    def is_symlink(self) -> bool:
        return self.given.is_symlink()

    def read_backups(self) -> list[str]:
        """The text before each change, newest first, from the backups that can be read."""
        return [file.text for file in self._find_backups()]

    def _find_backups(self) -> list[ClientFile]:
        found: list[ClientFile] = []
        for copy in sorted(self.path.parent.glob(_backup_name(glob.escape(self.path.name), "*")), reverse=True):
            with suppress(SettingsError):
                found.append(read(copy))
        return found

    def _remove_backups(self, *texts: str) -> None:
        for copy in self._find_backups():
            if copy.text in texts and not copy.is_symlink:
                with suppress(OSError):
                    copy.given.unlink()

    def restore(self, text: str, now: datetime) -> Path | None:
        """Restore an earlier text. If it equals a backup, removes the backups and returns None."""
        if not any(copy.text == text and not copy.is_symlink for copy in self._find_backups()):
            return self.replace(text, now)
        self._write(text, now, known=self.path)
        self._remove_backups(text, self.text)
        return None

    def replace(self, text: str, now: datetime) -> Path:
        """Replace the text. Returns the backup of the old text, which may already exist."""
        copies = (copy.given for copy in self._find_backups() if copy.text == self.text and not copy.is_symlink)
        return self._write(text, now, known=next(copies, None))

    def require_writable(self) -> None:
        """Raise SettingsError if the file is another user's or read-only, even if you could put another one in its place."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return  # another program has just removed the file, which writing will report
        if os.geteuid() not in (status.st_uid, 0):  # root may change any file
            raise SettingsError(f"{self.path} belongs to another user. Nothing was written. Run this as that user.")
        if not status.st_mode & stat.S_IWUSR:
            raise SettingsError(f"{self.path} is read-only. Nothing was written. To allow it: chmod u+w {quote(str(self.path))}")

    def remove(self) -> None:
        """Remove the file and its backups, if the file has not changed since it was read."""
        self.require_writable()
        try:
            _require_unchanged(self)
            self.path.unlink()
        except OSError as problem:
            raise SettingsError(f"{self.path} cannot be removed: {problem.strerror}. Nothing was written.") from None
        self._remove_backups(self.text)

    def _write(self, text: str, now: datetime, known: Path | None) -> Path:
        """Replace the text, and return the backup. `known`: a file that has the old text or makes a copy unnecessary."""
        self.require_writable()
        try:
            with ExitStack() as undo:
                like = self.path.stat()
                fd, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
                fresh = Path(name)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
                fill(fresh, fd, text, owner=(like.st_uid, like.st_gid))
                undo.callback(fresh.unlink, missing_ok=True)
                copy = known or _back_up(self, now)
                if not known:
                    undo.callback(copy.unlink)
                _require_unchanged(self)
                fresh.replace(self.path)
                undo.pop_all()
        except OSError as problem:
            raise SettingsError(
                f"{self.path} cannot be changed: {problem.strerror}. Nothing was written. "
                "Its folder must be writable, and the disk needs room for a copy."
            ) from None
        return copy


def read(given: Path) -> ClientFile:
    try:
        path = Path(os.path.realpath(given, strict=True))
    except OSError as problem:
        raise SettingsError(f"{given} cannot be read: {problem.strerror}.") from None
    text = read_text(path, str(given), max_bytes=MAX_BYTES, too_large=TOO_LARGE, encoding="utf-8")
    return ClientFile(given, path, text)


def create(path: Path, text: str) -> None:
    """Write a new file that only you can read. Creates its folder if necessary."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        fill(path, fd, text)
    except FileExistsError:
        raise SettingsError(f"{path} has just been made by another program. Nothing was written; run this again.") from None
    except OSError as problem:
        raise SettingsError(f"{path} cannot be written: {problem.strerror}. Nothing was written.") from None


def write_private(path: Path, text: str) -> None:
    """Write a file that only you can read, in place of an earlier one. If that raises OSError, the earlier one remains."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with ExitStack() as undo:
        undo.callback(Path(name).unlink, missing_ok=True)
        fill(Path(name), fd, text)
        os.replace(name, path)


def _require_unchanged(file: ClientFile) -> None:
    if file.path.read_bytes() != file.text.encode():
        raise SettingsError(f"{file.path} has just been changed by another program. Nothing was written; run this again.")


def _back_up(file: ClientFile, now: datetime) -> Path:
    """Back the file up, readable by its owner only, and never over another file."""
    while True:
        copy = file.path.with_name(_backup_name(file.path.name, now.strftime("%Y%m%d-%H%M%S-%f")))
        try:
            fd = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            now += timedelta(microseconds=1)
        else:
            like = file.path.stat()
            fill(copy, fd, file.text, owner=(like.st_uid, like.st_gid))
            return copy


def fill(path: Path, fd: int, text: str, owner: tuple[int, int] = (-1, -1)) -> None:
    """Write the whole file to disk; if that fails, remove it. Unless you name an `owner`, it belongs to you."""
    with ExitStack() as undo, open(fd, "wb") as file:
        undo.callback(path.unlink)
        os.fchown(fd, *owner)
        file.write(text.encode())
        file.flush()
        os.fsync(fd)
        undo.pop_all()


def _backup_name(name: str, moment: str) -> str:
    return f"{name}.overspill-{moment}.bak"
