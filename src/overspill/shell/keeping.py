"""Keep what a command prints: pass on small output, and store large output and print something small instead."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ObjectSendStream

from overspill.calls.job import Job, current
from overspill.calls.service import Background
from overspill.calls.tasks import open_group
from overspill.errors import StoreError
from overspill.record.events import CommandEnded, now_ms
from overspill.session.session import Session
from overspill.settings import Layer, Settings
from overspill.shell.command import RunningCommand, run_command
from overspill.text import encoding
from overspill.text.humanize import escape_invisible
from overspill.types import Reply
from overspill.wording import shell as wording

FAMILY = "shell"
KEEP_DEFAULTS = Layer(
    "keep", {"repeats": "full", "toolTimeout": None, "intentWithinSecs": 20, "toolOutput": {"answerWithinSecs": None}}
)
"""Commands have no time limit, and each one is a separate conversation."""
OFFERED = f"surface=[{wording.COMMAND}]"
MAX_UNCHANGED_BYTES = 1 << 20
"""The most bytes held in memory to be printed unchanged. Output that passes the gate is smaller, unless its limits are off."""


class StandardOutput:
    """Writes exact bytes, except on a terminal, where control characters are shown as escapes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace") if sys.stdout.isatty() else None

    def write(self, data: bytes, *, is_last: bool = True) -> None:
        """Write data. Unless it is the last, an incomplete character at the end waits for its remaining bytes."""
        if self._decoder is not None:
            data = escape_invisible(self._decoder.decode(data, is_last)).encode()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


class CommandOutput:
    """An output on its way through the gate, with its exact bytes while it is small."""

    def __init__(self, blocks: AsyncIterable[bytes], note_end: Callable[[str], None] = lambda id: None) -> None:
        self.job: Job | None = None
        self._blocks = blocks
        self._note_end = note_end
        self._exact: bytearray | None = bytearray()

    async def produce(self) -> AsyncIterator[bytes]:
        self.job = current.get()
        async for block in self._blocks:
            if self._exact is not None:
                self._exact += block
                self._exact = self._exact if len(self._exact) <= MAX_UNCHANGED_BYTES else None
            yield block
            await self.publish()
        if self.job is not None and self.is_in_background:
            self._note_end(self.job.id)

    @property
    def is_in_background(self) -> bool:
        return self.job is not None and self.job.background

    async def publish(self) -> None:
        """Let other processes read what has arrived so far."""
        if self.is_in_background and self.job is not None and self.job.result is not None:
            await anyio.to_thread.run_sync(self.job.result.spool.flush)

    def shown(self, reply: Reply) -> bytes:
        if reply.kept is None and reply.truncation is None and self._exact is not None and not reply.is_error:
            exact = bytes(self._exact)
            return exact if encoding.decode(exact) == reply.value else encoding.encode(reply.text) + b"\n"
        return encoding.encode(reply.text) + b"\n"


async def keep_stream(
    blocks: AsyncIterable[bytes], settings: Settings, what: str, warn: Callable[[str], None], secrets: Mapping[str, str]
) -> None:
    async with _open_session(settings, warn, secrets) as session:
        if session is None:
            await _pass(blocks)
            return
        output = CommandOutput(blocks)
        StandardOutput().write(output.shown(await session.call("input", {}, output.produce, background=False, intent=what)))


async def keep_command(
    command: Sequence[str],
    settings: Settings,
    what: str,
    warn: Callable[[str], None],
    secrets: Mapping[str, str],
    background_after: float | None = None,
    detach: Callable[[], None] = lambda: None,
) -> int:
    """Run a command, print something in place of its output, and return its exit code, or minus the signal that ended it.

    If it takes longer than `background_after` seconds, print how to read it later, `detach`, and return when it has ended. If the
    store cannot be used, warn, print everything, and wait for its end.
    """
    async with _open_session(settings, warn, secrets) as session:
        may_leave = background_after is not None and session is not None
        stdin = subprocess.DEVNULL if may_leave and os.isatty(0) else None
        async with run_command(command, stdin=stdin, reads_stderr=may_leave) as running:
            if session is None:
                await _pass(running.stdout.read())
            else:
                await _keep(session, running, Path(command[0]).name, what, background_after, detach)
    return running.exit_code


async def _keep(
    session: Session, running: RunningCommand, name: str, what: str, background_after: float | None, detach: Callable[[], None]
) -> None:
    background: Background = "now" if background_after == 0 else background_after is not None
    send, receive = anyio.create_memory_object_stream[bytes]()
    output = CommandOutput(receive, lambda id: session.note(CommandEnded(now_ms(), id, running.exit_code)))
    async with open_group() as group:
        group.start_soon(_pump, running, send, output)
        reply = await session.call(name, {}, output.produce, background=background, intent=what)
        if reply.job is not None and background_after is not None:
            await output.publish()
            StandardOutput().write(encoding.encode(wording.still_running(reply.job.id, background_after) + "\n"))
            detach()
            await session.stop()
        else:
            StandardOutput().write(output.shown(reply))


@asynccontextmanager
async def _open_session(
    settings: Settings, warn: Callable[[str], None], secrets: Mapping[str, str]
) -> AsyncGenerator[Session | None]:
    """Open a session; None if the store cannot be used."""
    async with AsyncExitStack() as opened:
        session: Session | None = None
        try:
            session = await opened.enter_async_context(Session(settings, family=FAMILY, preload=False, secrets=secrets))
        except StoreError as error:
            if settings.redact.shown == "on":  # without a session, output is printed as it arrives, and not searched for secrets
                raise
            warn(f"Nothing can be stored, so all of the output follows. {error}")
        yield session


async def _pass(blocks: AsyncIterable[bytes]) -> None:
    printed = StandardOutput()
    async for block in blocks:
        await anyio.to_thread.run_sync(partial(printed.write, block, is_last=False))
    printed.write(b"")


async def _pump(running: RunningCommand, send: ObjectSendStream[bytes], output: CommandOutput) -> None:
    """Pass standard error on to ours, or to the output once ours has no reader."""

    def write_all(data: bytes) -> None:
        with suppress(OSError):  # ours has no reader
            while data:
                data = data[os.write(2, data) :]

    async def relay(errors: AsyncIterator[bytes]) -> None:
        async for block in errors:
            await (send.send(block) if output.is_in_background else anyio.to_thread.run_sync(write_all, block))

    async with send:
        async with anyio.create_task_group() as group:
            if running.stderr is not None:
                group.start_soon(relay, running.stderr.read())
            async for block in running.stdout.read():
                await send.send(block)
        await running.wait()
