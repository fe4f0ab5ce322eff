"""Small files that only you can use, in one folder: what programs may keep between their runs. Standard library only."""

from __future__ import annotations

import errno
import hmac
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 4 << 20
_MAX_FILES = 256
_KEY_BYTES = 32
PASSING = frozenset({"_", "OLDPWD", "SHLVL", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "TERM_SESSION_ID", "WINDOWID"})
"""Variables that differ in every terminal, and say nothing to a server."""
_OF_ONE_SESSION = frozenset(
    {
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CURSOR_TRACE_ID",
    }
)
"""Variables that clients make anew for each session, with which a server may reach that session. What it lists is the same."""


def without_session(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out the variables of one session."""
    return {name: value for name, value in environ.items() if name not in _OF_ONE_SESSION}


def find_file(folder: Path, prefix: str, environ: Mapping[str, str], *parts: object) -> Path:
    """Return the path of the file for this environment and these parts, whose keyed hash it is named after: the environment holds
    secrets, and is not written anywhere. Raises OSError or ValueError if the folder cannot be used."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    at = os.lstat(folder)
    if not stat.S_ISDIR(at.st_mode) or at.st_uid != os.getuid() or at.st_mode & 0o077:
        raise ValueError("is not a folder that only you can use")
    variables = sorted((name, value) for name, value in without_session(environ).items() if name not in PASSING)
    whole = repr((variables, parts)).encode("utf-8", "surrogateescape")
    return folder / f"{prefix}{hmac.digest(_read_key(folder), whole, 'sha256').hex()[:32]}.json"


def read(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a file. Raises ValueError if it is a link, too large, belongs to another user, or others can read it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise ValueError("is a link") from None
        raise
    with open(fd, "rb") as file:
        at = os.fstat(fd)
        if not stat.S_ISREG(at.st_mode) or at.st_uid != os.getuid() or at.st_mode & 0o077:
            raise ValueError("is not a file that only you can use")
        if at.st_size > limit:
            raise ValueError(f"has more than {limit:,} bytes")
        return file.read(limit)


def write(path: Path, data: bytes) -> None:
    """Write a file, and remove the oldest of too many files. Ignores failures, because nothing depends on the file."""
    with suppress(OSError):
        if len(data) > MAX_BYTES:
            path.unlink(missing_ok=True)
            return
        os.replace(_make_file(path.parent, data), path)
        files = sorted(path.parent.glob("*.json"), key=lambda file: file.lstat().st_mtime)
        for file in files[:-_MAX_FILES]:
            file.unlink(missing_ok=True)


def _read_key(folder: Path) -> bytes:
    path = folder / "key"
    with suppress(FileExistsError):
        if not os.path.lexists(path):
            fresh = _make_file(folder, os.urandom(_KEY_BYTES))
            try:
                os.link(fresh, path)
            finally:
                fresh.unlink()
    key = read(path, _KEY_BYTES)
    if len(key) != _KEY_BYTES:
        raise ValueError("has a damaged key; remove the folder")
    return key


def _make_file(folder: Path, data: bytes) -> Path:
    fd, name = tempfile.mkstemp(prefix=".", dir=folder)  # only the owner can read it
    try:
        with open(fd, "wb") as file:
            file.write(data)
    except OSError:
        os.unlink(name)
        raise
    return Path(name)
