"""Keep what a command prints: small output is passed on, large output is stored and answered with something small."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import ObjectSendStream

from overspill.calls.job import Job, current
from overspill.calls.service import Background
from overspill.errors import StoreError
from overspill.record.events import CommandEnded, now_ms
from overspill.session.session import Session
from overspill.settings import Layer, Settings
from overspill.shell.command import RunningCommand, run_command
from overspill.text import encoding
from overspill.types import Reply
from overspill.wording import shell as wording

FAMILY = "shell"
KEEP_DEFAULTS = Layer(
    "keep", {"repeats": "full", "toolTimeout": None, "intentWithinSecs": 20, "toolOutput": {"answerWithinSecs": None}}
)
"""Commands have no time limit, and each is its own conversation."""
OFFERED = f"surface=[{wording.COMMAND}]"
MAX_UNCHANGED_BYTES = 1 << 20
"""Held in memory to be printed unchanged, whatever the bytes are. What passes the gate is smaller, unless its limits are off."""


class Printer(Protocol):
    """What the caller sees."""

    def write(self, data: bytes, *, is_last: bool = True) -> None: ...
    def tell(self, problem: str) -> None: ...


class CommandOutput:
    """An output on its way through the gate, with its exact bytes as long as there are few."""

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
        """Let other processes read what has come so far."""
        if self.is_in_background and self.job is not None and self.job.result is not None:
            await anyio.to_thread.run_sync(self.job.result.spool.flush)

    def shown(self, reply: Reply) -> bytes:
        if reply.kept is None and reply.truncation is None and self._exact is not None and not reply.is_error:
            return bytes(self._exact)
        return encoding.encode(reply.text) + b"\n"


async def keep_stream(blocks: AsyncIterable[bytes], settings: Settings, what: str, printer: Printer, name: str = "input") -> None:
    """Keep a stream, and print something in its place."""
    async with _open_session(settings, printer) as session:
        if session is None:
            await _pass(blocks, printer)
            return
        output = CommandOutput(blocks)
        printer.write(output.shown(await session.call(name, {}, output.produce, background=False, intent=what)))


async def keep_command(
    command: Sequence[str],
    settings: Settings,
    what: str,
    printer: Printer,
    background_after: float | None = None,
    detach: Callable[[], None] = lambda: None,
) -> int:
    """Run a command, print something in place of its output, and return its exit code, or minus the signal that ended it.

    If it takes longer than `background_after` seconds, print how to read it later, `detach`, and return when it has ended. If the
    store cannot be used, print everything, and wait for its end.
    """
    async with _open_session(settings, printer) as session:
        if session is None:
            return await _pass_command(command, printer)
        return await _keep_command(session, command, what, printer, background_after, detach)


async def _keep_command(
    session: Session,
    command: Sequence[str],
    what: str,
    printer: Printer,
    background_after: float | None,
    detach: Callable[[], None],
) -> int:
    may_leave = background_after is not None
    background: Background = "now" if background_after == 0 else may_leave
    stdin = subprocess.DEVNULL if may_leave and os.isatty(0) else None
    async with run_command(command, stdin=stdin, reads_stderr=may_leave) as running:
        send, receive = anyio.create_memory_object_stream[bytes]()
        output = CommandOutput(receive, lambda id: session.note(CommandEnded(now_ms(), id, running.exit_code)))
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(_pump, running, send, output)
            try:
                reply = await session.call(Path(command[0]).name, {}, output.produce, background=background, intent=what)
                if reply.job is not None and background_after is not None:
                    await output.publish()
                    printer.write(encoding.encode(wording.still_running(reply.job.id, background_after) + "\n"))
                    detach()
                    await session.stop()
                else:
                    printer.write(output.shown(reply))
            except Exception as error:  # raised below, because the group would wrap it
                failure = error
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure
    return running.exit_code


@asynccontextmanager
async def _open_session(settings: Settings, printer: Printer) -> AsyncGenerator[Session | None]:
    """None if the store cannot be used, which the printer has told."""
    async with AsyncExitStack() as opened:
        session: Session | None = None
        try:
            session = await opened.enter_async_context(Session(settings, family=FAMILY, preload=False))
        except StoreError as error:
            printer.tell(f"Nothing can be stored, so all of the output follows. {error}")
        yield session


async def _pass_command(command: Sequence[str], printer: Printer) -> int:
    async with run_command(command, stdin=None, reads_stderr=False) as running:
        await _pass(running.stdout.read(), printer)
    return running.exit_code


async def _pass(blocks: AsyncIterable[bytes], printer: Printer) -> None:
    async for block in blocks:
        await anyio.to_thread.run_sync(partial(printer.write, block, is_last=False))
    printer.write(b"")


async def _pump(running: RunningCommand, send: ObjectSendStream[bytes], output: CommandOutput) -> None:
    """Standard error goes on to ours, and to the output once nobody reads ours."""

    async def relay(errors: AsyncIterator[bytes]) -> None:
        async for block in errors:
            if output.is_in_background:
                await send.send(block)
            else:
                with suppress(OSError):  # nobody reads ours
                    await anyio.to_thread.run_sync(_write_all, 2, block)

    async with send:
        async with anyio.create_task_group() as group:
            if running.stderr is not None:
                group.start_soon(relay, running.stderr.read())
            async for block in running.stdout.read():
                await send.send(block)
        await running.wait()


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
