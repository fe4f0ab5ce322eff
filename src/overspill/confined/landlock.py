"""On Linux with Landlock, limits a process to opening files in one folder. Imported in the worker."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Set
from struct import pack

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, with these numbers on every processor
_GET_VERSION, _PATH_BENEATH, _SET_NO_NEW_PRIVILEGES = 1, 1, 38
_USE_FOLDER = sum(1 << bit for bit in (1, 2, 3, 4, 5, 7, 8, 14))  # read, write, list, make and remove files and folders, shorten
_KINDS_OF_ACCESS = {1: 13, 2: 14, 3: 15, 4: 15}  # rights for files, by Landlock's version; later ones have 16
_FIRST_WITH_TCP = 4
_CONNECT_AND_BIND = 0b11


def list_threads() -> Set[str]:
    return frozenset(os.listdir("/proc/self/task") if os.path.exists("/proc/self/task") else ())


def open_only_below(folder: str, threads: Set[str]) -> bool:
    """Let the process open only what is in this folder, and no TCP connections. It can still use what is already open.

    This applies to the current thread and to those it starts later, so no threads but `threads` may exist. Returns False and
    changes nothing if others exist, or if the system does not support it.
    """
    version = _call(_CREATE_RULESET, 0, 0, _GET_VERSION) if sys.platform == "linux" and threads else 0
    if version < 1 or not list_threads() <= threads:
        return False
    handled = (1 << _KINDS_OF_ACCESS.get(version, 16)) - 1
    attributes = pack("=QQ", handled, _CONNECT_AND_BIND if version >= _FIRST_WITH_TCP else 0)
    rules, opened = _call(_CREATE_RULESET, attributes, len(attributes), 0), os.open(folder, os.O_RDONLY)
    try:
        return (
            _call(_ADD_RULE, rules, _PATH_BENEATH, pack("=Qi", _USE_FOLDER & handled, opened), 0) == 0
            and ctypes.CDLL(None).prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
            and _call(_RESTRICT_SELF, rules, 0) == 0
        )
    finally:
        os.close(opened)
        if rules >= 0:
            os.close(rules)


def _call(number: int, *arguments: int | bytes) -> int:
    given = [ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    return ctypes.CDLL(None).syscall(ctypes.c_long(number), *given)
