"""Read a standard input, which may keep us waiting."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from typing import BinaryIO

import anyio
import anyio.to_thread

from overspill.cli.output import ask_to_type

_BLOCK_BYTES = 1 << 20


async def read_stream(file: BinaryIO) -> AsyncIterator[bytes]:
    """Input that may keep us waiting is not read in a thread, which Ctrl-C could not end. One Ctrl-D ends it."""
    ask_to_type(file, "Reading")  # not before: whoever is asked may press Ctrl-C, which is listened for only now
    fd = file.fileno()
    mode = os.fstat(fd).st_mode
    may_wait = file.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    while True:
        if may_wait:
            await anyio.wait_readable(file)
        block = os.read(fd, _BLOCK_BYTES) if may_wait else await anyio.to_thread.run_sync(os.read, fd, _BLOCK_BYTES)
        if not block:
            return
        yield block
