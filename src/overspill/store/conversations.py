"""The conversation that a process works for: all that one client process has started."""

from __future__ import annotations

import os
import subprocess
import sys
from binascii import crc32
from contextlib import suppress
from functools import cache
from typing import NamedTuple

_SHELLS = {"ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "zsh"}
_LAUNCHERS = frozenset({*_SHELLS, "disclaimer", "uv", "uvx"})
"""Programs that clients start others with. They stay the parent, one for each entry, so who started them is the client."""
_MAX_LAUNCHERS = 8
_MAX_ENDED = 10_000  # names that a hub of many days remembers
_ended: set[str] = set()
"""Conversations that are over, so that there is nothing more to find out about them."""


class _Process(NamedTuple):
    parent: int
    start: str
    names: set[str]
    """Its own and, for a script, that of the program that runs it."""


def conversation_of(pid: int) -> str:
    """Return the client that started a process: its machine, number and start, because a later process may get the same number.
    Empty if it is unknown."""
    try:
        for _ in range(_MAX_LAUNCHERS):
            pid = _read_process(pid).parent
            client = _read_process(pid)
            if not client.names & _LAUNCHERS:
                # Orphans are children of process 1. Only in a container is it a client, of the same user.
                is_client = pid > 1 or os.stat("/proc/1").st_uid == os.getuid()
                return f"{_find_machine()}-{pid}-{client.start}" if is_client else ""
    except (OSError, ValueError, IndexError):
        pass  # the process has ended, or the system does not say: its conversation is unknown, which shares nothing
    return ""


def conversation_in(name: str) -> str:
    """Return the conversation in a session's name, `FAMILY/CONVERSATION.SESSION`; empty if it has none."""
    return name.rpartition("/")[2].rpartition(".")[0]


def client_of(conversation: str) -> int:
    """Return the number of the client's process; 0 if it is unknown."""
    return int(conversation.split("-")[1]) if conversation else 0


def is_over(conversation: str) -> bool:
    """Whether the client has ended. Of another machine's client, and of one that is unknown, nobody here can say so."""
    return _runs(conversation) is False


def is_running(conversation: str) -> bool:
    """Whether the client runs on this machine."""
    return _runs(conversation) is True


def _runs(conversation: str) -> bool | None:
    machine, _, rest = conversation.partition("-")
    pid, _, start = rest.partition("-")
    if machine != _find_machine() or not pid.isdecimal() or conversation in _ended:
        return False if conversation in _ended else None
    try:
        does_run = _read_process(int(pid)).start == start
    except ProcessLookupError:
        does_run = False
    except (OSError, ValueError, IndexError):
        return None
    if not does_run:
        if len(_ended) >= _MAX_ENDED:
            _ended.clear()
        _ended.add(conversation)
    return does_run


@cache
def _find_machine() -> str:
    """Return what tells apart the machines and containers that number processes on their own."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts = file.read(), os.readlink("/proc/self/ns/pid")
    except OSError:
        parts = os.uname().nodename, ""
    return f"{crc32(repr(parts).encode()):08x}"


def _read_process(pid: int) -> _Process:
    """Raises ProcessLookupError if there is no such process, or OSError, ValueError or IndexError if nothing can be found out."""
    if sys.platform != "linux":
        command = ["/bin/ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)]
        said = subprocess.run(  # noqa: S603  # our own words
            command,
            capture_output=True,
            text=True,
            check=False,
            env={"LC_ALL": "C", "TZ": "UTC"},  # or else its start would change with the time zone
        ).stdout
        if not said:
            raise ProcessLookupError
        parent, *start, path = said.split(None, 6)
        return _Process(int(parent), "".join(filter(str.isdecimal, "".join(start))), {os.path.basename(path.strip())})
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            said = file.read().decode(errors="replace")
    except FileNotFoundError:
        raise ProcessLookupError from None
    before, _, after = said.rpartition(")")  # the name may contain any characters
    fields = after.split()
    names = {before.partition("(")[2]}
    with suppress(OSError):
        names.add(os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)"))
    return _Process(int(fields[1]), fields[19], names)
