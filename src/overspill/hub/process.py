"""The hub accepts fronts of the same user, serves each, and ends when it has been idle for a while."""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
from msgspec import Struct

import overspill
from overspill.errors import OverspillError
from overspill.hub import frames
from overspill.hub.first_answers import FirstAnswers
from overspill.hub.link import FrontLink, served_front
from overspill.hub.place import Place, peer_of, process_variables, rights_of
from overspill.store.conversations import client_of, conversation_of

_USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_HELLO_SECONDS = 10.0
_DRAIN_SECONDS = 10.0  # for calls to end before a hub is replaced
_CHECK_SECONDS = 0.05
_MAX_FRONTS = 1024
_MAX_UNGREETED_LINES = 100  # logged about connections without a greeting
_FILES_PER_FRONT = 10  # open files: two sockets, the pipes of a server, what its session keeps open, and a share of all others


class ServedEntry(Struct, dict=True, kw_only=True):
    """What is served for one entry of a client. `over_http` is the client's file, if the client connects to the port."""

    pid: int = 0
    conversation: str = ""
    """The client that started the front; empty if it is unknown."""
    over_http: str = ""
    describe: Callable[[], list[dict[str, Any]]] = list
    """Returns facts about the servers that are served for the client."""
    count_requests: Callable[[], int] = int
    drain: Callable[[], None] = lambda: None
    has_left: bool = False


class Front(ServedEntry, kw_only=True):
    """One server entry of one client, and what it was started with."""

    link: FrontLink
    words: list[str]
    folder: str
    environ: Mapping[str, str]
    first: FirstAnswers
    is_answered: bool = False
    """Whether its client already gets its first answers."""


Serve = Callable[[Front], Awaitable[None]]


class Hub:
    """A hub. `serve` accepts or refuses a front, serves it until its client has gone, and then waits for the end of its jobs."""

    def __init__(
        self,
        place: Place,
        serve: Serve,
        environ: Mapping[str, str],
        lists: Path,
        idle_seconds: float,
        stop: anyio.Event,
        port: int = 0,
    ) -> None:
        self._place = place
        self._lists_folder = lists
        self._stop = stop
        self._serve = serve
        self._variables = process_variables(environ)
        self._rights = rights_of(os.getpid())
        self._idle_seconds = idle_seconds
        self._port = port
        self.is_replaced = False
        """Whether the next hub takes over this one's sockets."""
        self._fronts: dict[int, ServedEntry] = {}
        self._numbers = self._ungreeted = 0
        self._changed = anyio.Event()
        self._began = time.time()
        self._is_ending = False
        self._accepting = anyio.CancelScope()
        self._max_fronts = min(_MAX_FRONTS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _FILES_PER_FRONT)

    async def run(self, listener: socket.socket) -> None:
        """Run until `stop` is set, a command stops it, or nothing happens for long. Remaining fronts start another hub."""
        listener.setblocking(False)
        own = os.stat(self._place.socket).st_ino
        async with anyio.create_task_group() as group:
            group.start_soon(self._accept, listener, group)
            group.start_soon(self._wait_until_idle)
            await self._stop.wait()
            self._is_ending = True
            self._accepting.cancel()
            await anyio.lowlevel.checkpoint()  # what accepts has stopped to watch the socket
            with suppress(FileNotFoundError):
                # Another hub may have started after the folder was emptied.
                if not self.is_replaced and os.stat(self._place.socket).st_ino == own:
                    os.unlink(self._place.socket)
            listener.close()
            await self._drain()
            group.cancel_scope.cancel()

    async def _accept(self, listener: socket.socket, group: anyio.abc.TaskGroup) -> None:
        with self._accepting:
            while True:
                try:
                    await anyio.wait_readable(listener)
                    connection, _ = listener.accept()
                except BlockingIOError:
                    continue
                except OSError:  # out of descriptors
                    await anyio.sleep(_CHECK_SECONDS)
                    continue
                group.start_soon(self._greet, connection)

    async def _greet(self, connection: socket.socket) -> None:
        """Welcome or refuse a front. Nothing that a front does may end the hub."""
        link = FrontLink(connection)
        try:
            uid, pid = peer_of(connection)
            if uid != os.getuid():
                return
            rights = rights_of(pid)  # read first, because another process may have this number later
            frame = await self._hear_greeting(link, pid)
            if frame is not None and frame[0] == frames.QUERY:
                await self._answer_query(link, frame[1])
            elif frame is not None and frame[0] == frames.HELLO:
                await self._let_in(link, pid, frame[1], has_same_rights=rights == self._rights)
        except (OSError, ValueError) as problem:  # the front is gone, or sent something that is not a frame
            if isinstance(problem, OSError) and problem.errno in _USED_UP:
                os.write(2, f"overspill: a front could not be let in: {problem.strerror}\n".encode())
        except Exception as problem:  # one front's failure must not affect another
            os.write(2, f"overspill: a front failed: {type(problem).__name__}\n".encode())
        finally:
            link.close()

    async def _hear_greeting(self, link: FrontLink, pid: int) -> tuple[bytes, bytes] | None:
        """Return the first frame of a front or a command; None, with a line in the log, if it sends none or another frame."""
        why = "it closed its connection"
        try:
            with anyio.fail_after(_HELLO_SECONDS):
                if (frame := await link.receive(frames.MAX_HELLO_BYTES)) is not None and frame[0] in (frames.HELLO, frames.QUERY):
                    return frame
            why = why if frame is None else "it sent something else"
        except TimeoutError:
            why = f"it sent nothing whole within {_HELLO_SECONDS:g} s"
        except ValueError:
            why = "what it sends is too large"
        self._note_ungreeted(pid, why)
        return None

    def _note_ungreeted(self, pid: int, why: str) -> None:
        self._ungreeted += 1
        if self._ungreeted <= _MAX_UNGREETED_LINES:
            os.write(2, f"overspill: process {pid} connected without a greeting: {why}\n".encode())

    async def _let_in(self, link: FrontLink, pid: int, hello: bytes, *, has_same_rights: bool) -> None:
        try:
            version, folder, words, variables = frames.unpack_hello(hello)
        except ValueError:
            self._note_ungreeted(pid, "its greeting cannot be read")
            return
        if self._is_ending:
            return  # without a decision, so the front waits for the next hub
        environ = {name: value for name, _, value in (each.partition("=") for each in variables)}
        problem = self._find_problem(version, environ) if has_same_rights else "the hub has other rights or limits"
        if problem:
            await link.write(frames.pack(frames.REFUSED, problem.encode()))
            return
        first = FirstAnswers(self._lists_folder, words, folder, environ)
        front = Front(
            link=link, pid=pid, words=words, folder=folder, environ=environ, first=first, conversation=conversation_of(pid)
        )
        served_front.set(link)
        with self.counting(front):
            async with anyio.create_task_group() as group:
                if await anyio.to_thread.run_sync(first.load):
                    front.is_answered = True
                    link.post(frames.WELCOME)
                    group.start_soon(first.give, link)
                await self._serve_front(front)
                group.cancel_scope.cancel()

    @contextmanager
    def counting(self, entry: ServedEntry) -> Generator[ServedEntry]:
        """Use this while an entry is served: a hub that serves anything is not idle."""
        self._numbers += 1
        number = self._numbers
        self._fronts[number] = entry
        self._announce_change()
        try:
            yield entry
        finally:
            del self._fronts[number]
            self._announce_change()

    async def _serve_front(self, front: Front) -> None:
        try:
            await self._serve(front)
        except OverspillError as problem:
            front.link.post_errors(f"overspill: error: {problem}\n".encode())
            front.link.post(frames.EXIT, b"2")
        except Exception as problem:  # one front's failure must not affect another
            front.link.post_errors(f"overspill: error: The hub failed ({type(problem).__name__}); see its log.\n".encode())
            front.link.post(frames.EXIT, b"1")
            os.write(2, f"overspill: a front failed: {type(problem).__name__}\n".encode())

    def _find_problem(self, version: str, environ: Mapping[str, str]) -> str:
        if version != overspill.__version__ or process_variables(environ) != self._variables:
            return "the hub has another version or another environment"
        if len(self._fronts) >= self._max_fronts:
            return f"the hub serves {len(self._fronts):,} fronts already, as many as it can"
        return ""

    async def _answer_query(self, link: FrontLink, query: bytes) -> None:
        if query == b"status":
            await link.write(frames.pack(frames.LINES, json.dumps(self.describe()).encode()))
        elif query in (b"stop", b"restart"):
            await link.write(frames.pack(frames.LINES, json.dumps({"began": self._began}).encode()))
            self.is_replaced = query == b"restart" and bool(self._port)
            os.utime(self._place.lock)  # so that fronts wait for the end of running calls
            for front in [each for each in self._fronts.values() if isinstance(each, Front) and query == b"stop"]:
                front.link.post_errors(b"overspill: The hub was stopped.\n")
                front.link.post(frames.EXIT, b"1")
            self._stop.set()

    def describe(self) -> dict[str, Any]:
        fronts = [
            {
                "pid": each.pid,
                "conversation": client_of(each.conversation) or -number,
                "overHttp": each.over_http,
                "hasLeft": each.has_left,
                "servers": each.describe(),
            }
            for number, each in self._fronts.items()
        ]
        about = {"pid": os.getpid(), "version": overspill.__version__, "began": self._began, "port": self._port}
        return {**about, "fronts": fronts}

    async def _wait_until_idle(self) -> None:
        while True:
            if self._fronts:
                await self._changed.wait()
                continue
            with anyio.move_on_after(self._idle_seconds) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught and not self._fronts:
                self._stop.set()
                return

    async def _drain(self) -> None:
        """Let running calls end, and take no more lines, which remain with their fronts."""
        for client in self._fronts.values():
            client.drain()
        with anyio.move_on_after(_DRAIN_SECONDS):
            while any(client.count_requests() for client in self._fronts.values()):  # noqa: ASYNC110
                await anyio.sleep(_CHECK_SECONDS)

    def _announce_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
