"""What a server listed last, in memory and on disk. Clients get it while the server is starting or stopped for idleness.

A file belongs to one command with its arguments, folder, environment and client. Its name is a keyed hash of all these: the
environment holds secrets, and is not written anywhere.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import msgspec
from mcp.shared.exceptions import MCPError
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import ServerError
from overspill.mcp.client import own_files
from overspill.mcp.client.connection import ServerConnection, list_pages
from overspill.mcp.client.handshake import Dated, Handshake, Raw, merge_freshness, read_ttl
from overspill.mcp.client.peer import ServerAccess
from overspill.text import lenient_json
from overspill.text.humanize import one_line

LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
"""The method for each list, by its key in the answer."""
_LIST_SECONDS = 10.0
_FORMAT = 1


class KnownList(Dated, frozen=True):
    """The entries of all pages of one list."""

    digest: str
    """A hash that does not depend on the order of the entries."""
    entries: list[Any] | None
    """The entries themselves; None if they are very long."""

    @classmethod
    def of(cls, pages: Sequence[Raw], key: str) -> KnownList:
        entries: list[Any] = []
        for page in pages:
            entries += cast("list[Any]", found) if isinstance(found := page.get(key), list) else [found]
        spelled = [_spell(entry) for entry in entries]
        digest = hashlib.sha256(b"".join(sorted(hashlib.sha256(each).digest() for each in spelled))).hexdigest()
        is_long = sum(map(len, spelled)) > own_files.MAX_BYTES
        return cls(digest, None if is_long else entries, freshness=merge_freshness(pages), t=time.time())


class Known(Struct, frozen=True):
    handshake: Handshake
    lists: dict[str, KnownList] = {}
    format: int = _FORMAT


class KnownLists:
    """What one server listed last. Kept in memory only if there is no `folder`."""

    def __init__(self, folder: str, access: ServerAccess) -> None:
        self._folder = Path(folder) if folder and access.config.command else None
        self._access = access
        self._known: Known | None = None
        self._file: Path | None = None
        self._is_read = self._is_written = False
        self._reading = anyio.Lock()
        self._pages: dict[str, list[Raw]] = {}
        self.seen: set[str] = set()
        """The keys of the lists that this client has."""

    async def load(self) -> Known | None:
        async with self._reading:  # the client and the server's greeting may ask for it at the same time
            if not self._is_read and self._folder is not None:
                found = await anyio.to_thread.run_sync(self._read)
                self._known = self._known or found
            self._is_read = True
        return self._known

    def freshness(self, key: str) -> Raw | None:
        """Return how long the list may be kept, as the server said; None if the server has no such list."""
        if self._known is None or LISTS[key].split("/")[0] in self._known.handshake.capabilities:
            return found.left if self._known and (found := self._known.lists.get(key)) else {}
        return None

    def give(self, key: str) -> KnownList | None:
        """Return the list to give to the client, and remember that the client has it. None if it is unknown or very long."""
        found = self._known and self._known.lists.get(key)
        if not found or found.entries is None:
            return None
        self.seen.add(key)
        return found

    async def note_handshake(self, handshake: Handshake) -> None:
        known = await self.load()
        self._is_written = known is not None and known.handshake == handshake
        self._known = Known(handshake) if known is None else replace(known, handshake=handshake)

    async def note(self, key: str, pages: Sequence[Raw]) -> bool:
        """Store a list that has just arrived. Returns whether it differs from the one stored before."""
        if (known := self._known) is None:
            return False
        self.seen.add(key)
        before, now = known.lists.get(key), KnownList.of(pages, key)
        is_same = before is not None and before.digest == now.digest
        self._known = replace(known, lists={**known.lists, key: now})
        if self._folder is not None and not (is_same and self._is_written and not read_ttl(now.freshness)):
            self._is_written = True
            await anyio.to_thread.run_sync(self._write, self._known)
        return not is_same

    async def note_page(self, key: str, page: Raw, *, is_first: bool) -> None:
        """Collect one page for a client that follows the pages itself, and store the list after the last page."""
        self._pages[key] = [*([] if is_first else self._pages.pop(key, [])), page]
        if not isinstance(page.get("nextCursor"), str):
            await self.note(key, self._pages.pop(key))

    async def find_changed(self, connection: ServerConnection) -> list[str]:
        """Fetch the lists and return the keys of those that the client has in another form, except lists that arrive late."""
        changed: list[str] = []
        for key in [key for key in LISTS if key in self.seen]:
            pages: list[Raw] = []
            with anyio.move_on_after(_LIST_SECONDS), suppress(MCPError, ServerError):
                if LISTS[key].split("/")[0] in connection.handshake.capabilities:
                    pages = await list_pages(connection.request, LISTS[key], key, self._access.config.name)
                if await self.note(key, pages):
                    changed.append(key)
        return changed

    def _read(self) -> Known | None:
        """Read the stored lists. Returns None if nothing is stored, or, with a line in the log, if the file may not be ours."""
        assert self._folder is not None
        try:
            config, client = self._access.config, self._access.client
            said = _spell([client.info, client.capabilities, client.is_modern])
            started = config.command, config.args, os.path.abspath(config.cwd or "")
            self._file = own_files.find_file(self._folder, "", {**self._access.environ, **config.env}, started, said)
            data = own_files.read(self._file)
            known = lenient_json.parse(data, Known)
            if known is None or known.format != _FORMAT or not known.lists.keys() <= LISTS.keys():
                raise ValueError("is damaged")
            return known
        except OSError:  # the file does not exist yet, or nothing can be stored in this folder
            return None
        except ValueError as problem:
            what = f"{one_line(str(self._file or self._folder))} {problem}"
            self._access.log(f"The lists kept for the server {self._access.config.name} are not used: {what}.")
            return None

    def _write(self, known: Known) -> None:
        if self._file is not None:
            with suppress(UnicodeEncodeError, TypeError, ValueError):
                own_files.write(self._file, msgspec.json.encode(known))


def _spell(value: Any) -> bytes:
    """Write the value as JSON that does not depend on the order of its keys."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (UnicodeEncodeError, TypeError, ValueError):
        return lenient_json.dumps(value)
