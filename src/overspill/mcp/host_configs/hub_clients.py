"""Clients that reach the hub over HTTP. For each token, an owner-only file has the servers that it may use.

The token itself is only in the client's file: ours is named by the token's digest.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overspill.errors import SettingsError
from overspill.mcp.client import own_files
from overspill.mcp.host_configs.files import write_private
from overspill.text.jsonc import Node
from overspill.text.lenient_json import ready
from overspill.text.regex import regex

_KIND = ".json"
_NAME = regex(r"([0-9a-f]{32})\.json")
_TOKEN = regex(r"Bearer (overspill_[A-Za-z0-9_-]{43})")


def identify_token(token: bytes) -> str:
    """Return the name under which an HTTP client is known: a digest of its token."""
    return hashlib.sha256(token).hexdigest()[:32]


class HubAddress(Struct, frozen=True):
    """How a client reaches the hub over HTTP. The token says which servers it may use."""

    url: str
    token: str

    @classmethod
    def make(cls, port: int) -> HubAddress:
        """Make an address with a new token of 256 bits, whose form says what it is."""
        return cls(f"http://127.0.0.1:{port}/mcp", f"overspill_{secrets.token_urlsafe(32)}")

    @classmethod
    def find(cls, entry: Node) -> HubAddress | None:
        """Recognize an entry in the usual spelling by the form of its token."""
        url, given = entry.get("url"), entry.get("headers", "Authorization")
        found = _TOKEN.fullmatch(str(given.value)) if given else None
        return cls(str(url.value), found[1]) if url and found else None

    def entry(self, kind: str) -> dict[str, Any]:
        return {**({"type": kind} if kind else {}), "url": self.url, "headers": {"Authorization": f"Bearer {self.token}"}}


class HubClient(Struct, frozen=True):
    file: str
    """The client's file."""
    folder: str
    """Where its servers start, unless their entries name another folder."""
    path: str
    """The PATH of its servers: that of the shell in which the file was wrapped."""
    servers: str
    """The entries, exactly as they were in the client's file."""


class HubClients:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stamps(self) -> Mapping[str, tuple[int, int]]:
        """Return, for the digest of each token, what changes with its file. Raises SettingsError if others can open it."""
        try:
            found = self._folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise SettingsError(
                    f"{self._folder} is not a folder that only you can open. Run `chmod 700` on it, or remove it."
                )
            files = [(name[1], each) for each in os.scandir(self._folder) if (name := _NAME.fullmatch(each.name))]
        except FileNotFoundError:
            return {}
        stamps: dict[str, tuple[int, int]] = {}
        for digest, file in files:
            with suppress(FileNotFoundError):  # it was removed at this moment
                status = file.stat(follow_symlinks=False)
                stamps[digest] = status.st_ino, status.st_mtime_ns
        return stamps

    def read(self, digest: str) -> HubClient | None:
        """Return the client whose token has this digest; None if there is none. Raises SettingsError if it cannot be read."""
        try:
            return msgspec.json.decode(own_files.read(self._file(digest)), type=ready(HubClient))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise SettingsError(f"{self._file(digest)} cannot be read: {problem.strerror}.") from None
        except ValueError:  # a msgspec.DecodeError is one too
            raise SettingsError(
                f"{self._file(digest)} cannot be used as it is. Run overspill unwrap, then overspill wrap again."
            ) from None

    def write(self, digest: str, client: HubClient | None) -> None:
        """Store what a token may use, or revoke the token."""
        try:
            if client is None:
                with suppress(FileNotFoundError):
                    self._file(digest).unlink()
            else:
                self.stamps()
                write_private(self._file(digest), msgspec.json.encode(client).decode())
        except OSError as problem:
            raise SettingsError(f"{self._file(digest)} cannot be changed: {problem.strerror}.") from None

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}{_KIND}"
