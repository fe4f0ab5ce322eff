"""What a front's client asks first, answered by a hub that has just started and is still importing the rest of its code.

A hub keeps what it answered to `initialize`, `server/discover` and lists, under a keyed hash of all that a front was started
with. The next hub gives the same front the same answers. Once it can serve the front, it acts on the same lines as if they were
new, and sends no answer a second time. If a list differs by then, it says that the list has changed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio

import overspill
from overspill.hub import frames
from overspill.hub.link import FrontLink
from overspill.mcp.client import own_files
from overspill.settings.files import USER_NAMES, WORKING_DIRECTORY_NAMES
from overspill.text.lenient_json import UNREADABLE, dumps, loads

_FORMAT = 1
_INITIALIZED = "notifications/initialized"
LISTEN = "subscriptions/listen"
_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_METHODS = ("initialize", "server/discover", LISTEN, *_LISTS)
_MAX_PARAMS = 10_000
_MAX_REPLAYED_BYTES = 100_000  # of the lines of one client that can be answered here
_MAX_KEPT = 64  # answers in a file

Asked = tuple[str, str, str]
"""A method, its parameters, and those of the client's `initialize`, as JSON."""


class FirstAnswers:
    """The answers for one front."""

    def __init__(self, folder: Path, words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._words, self._cwd, self._environ = tuple(words), cwd, environ
        self._file: Path | None = None
        self._kept: dict[Asked, dict[str, Any]] = {}
        """The answers in the file, which is as old as `_t`."""
        self._t = 0.0
        self._found: dict[Asked, dict[str, Any]] = {}
        """What this hub has answered by itself to the first question of each method."""
        self._given: set[tuple[bytes, Asked]] = set()
        """The requests that this hub has answered from the file, by their ids."""
        self.changed: set[str] = set()
        """Kinds of lists that a client of the newer protocol was given and that have changed. It is told when it subscribes."""
        self._client = ""
        self._replays, self._rest = bytearray(), bytearray()
        self._scope, self._ended = anyio.CancelScope(), anyio.Event()

    def load(self) -> bool:
        """Read the file, in a thread: what it looks at may be on a disk that hangs. Returns whether there are answers."""
        with suppress(OSError, ValueError, TypeError, KeyError, OverflowError, *UNREADABLE):
            parts = overspill.__version__, self._words, self._cwd, _describe_files(self._words, self._cwd, self._environ)
            self._file = own_files.find_file(self._folder, "first-", self._environ, *parts)
            found = loads(own_files.read(self._file))
            if found["format"] == _FORMAT:
                self._t = int(found["t"])
                self._kept = {(str(method), str(params), str(client)): dict(r) for method, params, client, r in found["answers"]}
        return bool(self._kept)

    def save(self) -> None:
        """Write the file, if there is something new for it."""
        if self._file is not None and not self._found.items() <= self._kept.items():
            answers = {asked: self._age(result) for asked, result in self._kept.items() if asked not in self._found} | self._found
            rows = [(*asked, result) for asked, result in answers.items()][-_MAX_KEPT:]
            with suppress(ValueError, TypeError):
                own_files.write(self._file, dumps({"format": _FORMAT, "t": time.time(), "answers": rows}))

    def find_asked(self, method: Any, params: object) -> Asked | None:
        """Return what a request asks, if its answer is worth keeping."""
        if method not in _METHODS:
            return None
        written = dumps(params).decode()
        if method == "initialize":
            self._client = written
        return (method, written, self._client) if len(written) <= _MAX_PARAMS else None

    async def give(self, link: FrontLink) -> None:
        """Answer the client's lines in order, until one has no known answer or `end` is called."""
        try:
            with self._scope, suppress(OSError, ValueError):  # the hub reports a frame over the limit when it reads on
                while not self._rest and (frame := await link.receive()) is not None:
                    kind, payload = frame
                    self._rest += payload if kind == frames.DATA else b""
                    while (end := self._rest.find(b"\n") + 1) and self._answer(link, bytes(self._rest[:end])):
                        del self._rest[:end]
                        await link.write(b"")  # a client that does not read gets no more
                    if kind != frames.DATA:
                        link.put_back(frames.pack(*frame))
                        return
        finally:
            self._ended.set()

    async def end(self, link: FrontLink) -> None:
        """Leave the connection to the hub, with all lines of its client."""
        self._scope.cancel()
        await self._ended.wait()
        link.put_back(bytes(self._replays) + (frames.pack(frames.DATA, bytes(self._rest)) if self._rest else b""))

    def _answer(self, link: FrontLink, line: bytes) -> bool:
        """Answer a line, or take it if it needs no answer. Returns False for a line that must wait for the hub."""
        try:
            found = loads(line) if len(self._replays) + len(line) <= _MAX_REPLAYED_BYTES else None
        except (ValueError, *UNREADABLE):
            found = None
        if not isinstance(found, dict):
            return False
        message = cast("dict[str, Any]", found)
        asked = None if message.get("id") is None else self.find_asked(message.get("method"), message.get("params"))
        result = asked and self._kept.get(asked)
        if asked and asked[0] == LISTEN:  # its answer comes when the subscription ends
            link.confirm(frames.IS_REQUEST, dumps(message["id"]))
            if result is not None:
                link.post(frames.LINES, _acknowledge(message["id"], result))
                self._given.add((dumps(message["id"]), asked))
        elif asked is None or result is None:
            if message.get("method") != _INITIALIZED:
                return False
            link.confirm(frames.IS_STATE)
        else:
            id = dumps(message["id"])
            link.confirm(frames.IS_REQUEST | (frames.IS_STATE if asked[0] == "initialize" else 0), id)
            answer = b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (id, dumps(self._age(result)))
            link.post_frames(frames.pack_answer(id, answer))
            self._given.add((id, asked))
        self._replays += frames.pack(frames.REPLAY, line)
        return True

    def _age(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result with what is left of the time for which the server said that it may be kept."""
        if not isinstance(left := result.get("ttlMs"), int):
            return result
        return {**result, "ttlMs": max(0, left - max(0, int((time.time() - self._t) * 1000)))}

    def note_acknowledged(self, asked: Asked, id: bytes, params: dict[str, Any]) -> bool:
        """Keep what the hub says when a subscription begins. Returns whether the client was told the same already."""
        self._found.setdefault(asked, {name: value for name, value in params.items() if name != "_meta"})
        is_given = (id, asked) in self._given
        self._given.discard((id, asked))
        return is_given and self._kept[asked].get("notifications") == params.get("notifications")

    def note(self, asked: Asked, id: bytes, result: dict[str, Any]) -> bytes:
        """Keep an answer of the hub. Returns the line that tells the client if it was given another list than this one."""
        is_first = asked[0] != LISTEN and all(each[0] != asked[0] for each in self._found)
        if is_first and "nextCursor" not in result and '"cursor":' not in asked[1]:  # the next hub may have other pages
            self._found[asked] = result
        key = _LISTS.get(asked[0], "")
        is_given = (id, asked) in self._given
        self._given.discard((id, asked))
        if not key or not is_given or self._kept[asked].get(key) == result.get(key):
            return b""
        kind = asked[0].partition("/")[0]
        if not self._client:
            self.changed.add(kind)
            return b""
        return b'{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}\n' % kind.encode()


def _acknowledge(id: object, params: Mapping[str, Any]) -> bytes:
    about = {**params, "_meta": {_SUBSCRIPTION: id}}
    return dumps({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": about}) + b"\n"


def _describe_files(words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Describe the files that may decide what a front serves: those that its arguments name, and the settings."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
    own = words[: words.index("--")] if "--" in words else words
    paths = [os.path.join(cwd, word.rpartition("=")[2]) for word in own]
    paths += [os.path.join(cwd, name) for name in WORKING_DIRECTORY_NAMES]
    paths += [os.path.join(config, "overspill", name) for name in USER_NAMES]
    found: list[tuple[str, int, int]] = []
    for path in paths:
        with suppress(OSError, ValueError):
            if stat.S_ISREG((at := os.stat(path)).st_mode):
                found.append((path, at.st_mtime_ns, at.st_size))
    return found
