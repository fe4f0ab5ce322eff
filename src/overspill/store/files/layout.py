"""Where files are: `<root>/overspill-<12 hex>/session-<uuid>/<uuid>`, in directories that no other user can enter or redirect.

Every call is relative to an open directory and follows no link, so a directory swapped on the way cannot lead a write astray.
Names that do not follow this layout exactly are never touched.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError

LOCK = "lock"
JOURNAL = "journal.jsonl"
PART = ".part"
_RUN = re.compile(r"overspill-[0-9a-f]{12}")
_LOCK_DIRECTORY = re.compile(r"overspill-lock-[0-9a-f]{12}")
_SESSION = "session-"
_PROJECT_FOLDER = ".overspill"
_GITIGNORE = ".gitignore"


class Directory:
    """An open directory. Everything created in it is 0700 or 0600 whatever the umask. `os.open` itself adds O_CLOEXEC."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd: int | None = fd
        self.path = path

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def fd(self) -> int:
        if self._fd is None:
            raise StoreError(f"{self.path} was closed. Open its session again.")
        return self._fd

    def names(self) -> list[str]:
        return sorted(os.listdir(self.fd))

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def open_directory(self, name: str) -> Directory:
        return self._enter(name, made=False)

    def make_directory(self, name: str) -> Directory:
        os.mkdir(name, 0o700, dir_fd=self.fd)
        return self._enter(name, made=True)

    def make_file(self, name: str, flags: int = 0) -> int:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | flags, 0o600, dir_fd=self.fd)
        os.fchmod(fd, 0o600)
        return fd

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        # Without O_NONBLOCK, opening a pipe of that name would block forever.
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=self.fd)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            os.close(fd)
            raise StoreError(f"{self.path / name} is refused: it is not a file of this user. Remove it or set another storeDir.")
        return fd

    def remove_file(self, name: str) -> None:
        os.unlink(name, dir_fd=self.fd)

    def remove_directory(self, name: str) -> None:
        os.rmdir(name, dir_fd=self.fd)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _enter(self, name: str, *, made: bool) -> Directory:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.fd)
        try:
            _check_private(os.fstat(fd), self.path / name)
            if made:
                os.fchmod(fd, 0o700)
        except BaseException:
            os.close(fd)
            raise
        return Directory(fd, self.path / name)


def session_directory(session: str) -> str:
    return _SESSION + session


class Place(Struct, frozen=True):
    """Where one session is below the root."""

    run: str
    session: str

    def open(self, root: Directory) -> Directory:
        with root.open_directory(self.run) as run:
            return run.open_directory(session_directory(self.session))


class Root(Struct, frozen=True):
    """Where a store is. The user chose `start`, which may be a link or open to everyone like /tmp; only what we create in it must
    be private. `below` leads through a working directory, which may be somebody else's, so no link is followed there."""

    start: Path
    below: tuple[str, ...] = ()

    @classmethod
    def at(cls, path: Path) -> Root:
        """A relative path is below the current working directory, even if the process changes to another later."""
        return cls(path) if path.is_absolute() else cls(Path.cwd(), path.parts)

    @property
    def path(self) -> Path:
        return self.start.joinpath(*self.below)

    def open(self) -> Directory:
        return self._walk(makes=False)

    def make(self) -> Directory:
        for missing in reversed([part for part in (self.start, *self.start.parents) if not part.exists()]):
            missing.mkdir(0o700, exist_ok=True)
        root = self._walk(makes=True)
        if self.path.parent.name == _PROJECT_FOLDER:
            _keep_out_of_git(root)
        return root

    def _walk(self, *, makes: bool) -> Directory:
        here = Directory(os.open(self.start, os.O_RDONLY | os.O_DIRECTORY), self.start)
        for name in self.below:
            with here:
                here = _enter_child(here, name, makes=makes)
        return here


def _enter_child(above: Directory, name: str, *, makes: bool) -> Directory:
    if makes:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above.fd)
    if stat.S_ISLNK(above.stat(name).st_mode):
        raise StoreError(
            f"{above.path / name} is refused: it is a symbolic link, which another user may have put there. "
            "Remove it, or set storeDir to an absolute path."
        )
    return Directory(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above.fd), above.path / name)


def _keep_out_of_git(root: Directory) -> None:
    """Make sure that a store in a project is not committed by accident. A file that is already there stays."""
    with suppress(OSError):  # outputs can be stored without it
        fd = root.make_file(_GITIGNORE)
        try:
            os.write(fd, b"*\n")
        except OSError:
            root.remove_file(_GITIGNORE)
        finally:
            os.close(fd)


def list_runs(root: Directory, known: Container[str] = ()) -> list[str]:
    """Only the runs of this user: a shared /tmp has others. Those that are `known` to be are not looked at."""
    return [name for name in os.listdir(root.fd) if name in known or (is_run(name) and is_ours(root, name))]


def list_lock_directories(root: Directory) -> list[str]:
    """Only directories that nobody else can enter: others may have made one with such a name, or hold a lock in it."""
    return [name for name in root.names() if _LOCK_DIRECTORY.fullmatch(name) and _is_private_directory(root, name)]


def hints_directory() -> str:
    return f"overspill-hints-{os.geteuid()}"


def is_run(name: str) -> bool:
    return bool(_RUN.fullmatch(name))


def new_lock_directory() -> str:
    return f"overspill-lock-{secrets.token_hex(6)}"


def remove_lock_directory(root: Directory, directory: Directory) -> None:
    # It stays if another process has already made the next lock in it. That process then removes it.
    with suppress(OSError):
        directory.remove_file(LOCK)
        root.remove_directory(directory.path.name)


def list_sessions(run: Directory) -> list[str]:
    return [name.removeprefix(_SESSION) for name in run.names() if _is_session(name) and is_ours(run, name)]


def has_session(run: Directory, session: str) -> bool:
    """Check for one session without listing the others."""
    return is_ours(run, session_directory(session))


def list_outputs(session: Directory) -> list[str]:
    """The ids of complete outputs."""
    return [name for name in session.names() if handles.is_uuid(name)]


def has_output(session: Directory, id: str) -> bool:
    """Complete or not. The final name is looked for again, because the output may be completed after the first look."""
    return any(has_file(session, name) for name in (id, id + PART, id))


def has_file(directory: Directory, name: str) -> bool:
    return _find(directory, name) is not None


def _find(directory: Directory, name: str) -> os.stat_result | None:
    try:
        return directory.stat(name)
    except FileNotFoundError:
        return None


def sweep(session: Directory) -> None:
    """Remove what we created in it: outputs first, then the journal, and the lock last, so that an interrupted sweep leaves a
    shelf that the next start recognises as abandoned."""
    remove_outputs(session, session.names())
    for name in (JOURNAL, LOCK):
        _remove_own_file(session, name)


def remove_outputs(session: Directory, names: Iterable[str]) -> int:
    """Remove those of these files that are outputs, complete or not. Returns how many bytes they had."""
    return sum(_remove_own_file(session, name) for name in names if handles.is_uuid(name.removesuffix(PART)))


def measure_files(session: Directory) -> dict[str, tuple[int, float]]:
    """The size of each file and when it was last used, by name."""
    files: dict[str, tuple[int, float]] = {}
    for name in session.names():
        # It may have been completed since it was listed.
        if found := _find(session, name) or _find(session, name := name.removesuffix(PART)):
            files[name] = found.st_size, found.st_mtime
    return files


def _remove_own_file(directory: Directory, name: str) -> int:
    """Returns how many bytes it had."""
    with suppress(FileNotFoundError):
        found = directory.stat(name)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            directory.remove_file(name)
            return found.st_size
    return 0


def _is_session(name: str) -> bool:
    return name.startswith(_SESSION) and handles.is_uuid(name.removeprefix(_SESSION))


def is_ours(directory: Directory, name: str) -> bool:
    found = _find(directory, name)
    return found is not None and found.st_uid == os.geteuid()


def _is_private_directory(directory: Directory, name: str) -> bool:
    found = _find(directory, name)
    return found is not None and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _check_private(found: os.stat_result, path: Path) -> None:
    if found.st_uid != os.geteuid():
        raise StoreError(f"{path} is refused: it belongs to another user (uid {found.st_uid}). Set another storeDir.")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise StoreError(
            f"{path} is refused: other users may enter it (mode {mode:04o}). Close it with `chmod 700` or remove it."
        )
