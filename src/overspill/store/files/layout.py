"""Where files are: `<root>/overspill-<12 hex>/session-<uuid>/<uuid>`, in directories that no other user can enter or redirect.

Every call is relative to an open directory and follows no links, so a directory swapped on the way cannot redirect a write.
Names that do not follow this layout exactly are never touched. System errors become messages that say what to do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError, StoreFull
from overspill.text.regex import regex

LOCK = "lock"
JOURNAL = "journal.jsonl"
PART = ".part"
_RUN = regex(r"overspill-[0-9a-f]{12}")
_SESSION = "session-"
_PROJECT_FOLDER = ".overspill"
_GITIGNORE = ".gitignore"
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


class Directory:
    """An open directory. Everything created in it is 0700 or 0600, independent of the umask. `os.open` itself adds O_CLOEXEC."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd: int | None = fd
        self.path = path

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
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

    def make_directory(self, name: str) -> Directory:
        os.mkdir(name, 0o700, dir_fd=self.fd)
        made = self.open_directory(name)
        os.fchmod(made.fd, 0o700)
        return made

    def open_directory(self, name: str) -> Directory:
        opened = Directory(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.fd), self.path / name)
        found = os.fstat(opened.fd)
        if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return opened
        opened.close()
        if found.st_uid != os.geteuid():
            raise StoreError(f"{opened.path} is refused: it belongs to another user (uid {found.st_uid}). Set another storeDir.")
        mode = stat.S_IMODE(found.st_mode)
        raise StoreError(
            f"{opened.path} is refused: other users may enter it (mode {mode:04o}). Close it with `chmod 700` or remove it."
        )

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
    be private. `below` leads through a working directory, which may come from other people, so no link is followed there."""

    start: Path
    below: tuple[str, ...] = ()

    @classmethod
    def at(cls, path: Path) -> Root:
        """A relative path is below the current working directory, even if the process changes to another later."""
        return cls(path) if path.is_absolute() else cls(Path.cwd(), path.parts)

    @property
    def path(self) -> Path:
        return self.start.joinpath(*self.below)

    def make(self) -> Directory:
        for missing in reversed([part for part in (self.start, *self.start.parents) if not part.exists()]):
            missing.mkdir(0o700, exist_ok=True)
        root = self.open(makes=True)
        if self.path.parent.name == _PROJECT_FOLDER:
            # Keeps a store in a project from being committed by accident. Outputs can be stored without it.
            with suppress(OSError), open(root.make_file(_GITIGNORE), "wb", buffering=0) as file:
                try:
                    file.write(b"*\n")
                except OSError:
                    root.remove_file(_GITIGNORE)
        return root

    def open(self, *, makes: bool = False) -> Directory:
        here = Directory(os.open(self.start, os.O_RDONLY | os.O_DIRECTORY), self.start)
        for name in self.below:
            with here as above:
                if makes:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=above.fd)
                path = above.path / name
                if stat.S_ISLNK(above.stat(name).st_mode):
                    raise StoreError(
                        f"{path} is refused: it is a symbolic link, which another user may have put there. "
                        "Remove it, or set storeDir to an absolute path."
                    )
                here = Directory(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above.fd), path)
        return here


def hints_directory() -> str:
    return f"overspill-hints-{os.geteuid()}"


def is_run(name: str) -> bool:
    return bool(_RUN.fullmatch(name))


def list_runs(root: Directory, known: Container[str] = ()) -> list[str]:
    """The runs of this user, because a shared /tmp has those of others too. Does not check runs that are `known`."""
    return [name for name in os.listdir(root.fd) if name in known or (is_run(name) and is_ours(root, name))]


def list_sessions(run: Directory) -> list[str]:
    found = [name.removeprefix(_SESSION) for name in run.names() if name.startswith(_SESSION)]
    return [session for session in found if handles.is_uuid(session) and has_session(run, session)]


def has_session(run: Directory, session: str) -> bool:
    """Whether a run has this session. Does not list all of its sessions."""
    return is_ours(run, session_directory(session))


def find(directory: Directory, name: str) -> os.stat_result | None:
    try:
        return directory.stat(name)
    except FileNotFoundError:
        return None


def is_ours(directory: Directory, name: str) -> bool:
    found = find(directory, name)
    return found is not None and found.st_uid == os.geteuid()


def sweep(session: Directory) -> None:
    """Remove what we created in it: outputs first, then the journal, and the lock last, so that an interrupted sweep leaves a
    shelf that the next start recognises as abandoned."""
    remove_outputs(session, session.names())
    for name in (JOURNAL, LOCK):
        _remove_own_file(session, name)


def remove_outputs(session: Directory, names: Iterable[str]) -> int:
    """Remove the given files that are outputs, complete or not. Returns how many bytes they had."""
    return sum(_remove_own_file(session, name) for name in names if handles.is_uuid(name.removesuffix(PART)))


def _remove_own_file(directory: Directory, name: str) -> int:
    with suppress(FileNotFoundError):
        found = directory.stat(name)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            directory.remove_file(name)
            return found.st_size
    return 0


def measure_files(session: Directory) -> dict[str, tuple[int, float]]:
    """The size of each file and when it was last used, by name."""
    files: dict[str, tuple[int, float]] = {}
    for name in session.names():
        # It may have been completed since it was listed.
        if found := find(session, name) or find(session, name := name.removesuffix(PART)):
            files[name] = found.st_size, found.st_mtime
    return files


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
