"""Patterns written in the source."""

from __future__ import annotations

import re
from re import Match, Pattern, escape
from typing import Any, AnyStr, cast

__all__ = ["Match", "Pattern", "Regex", "escape", "regex"]
_PARTS = tuple(each for each in dir(Pattern) if each[0] != "_")


class Regex:
    """The parts of a compiled pattern that the source uses."""


class _Uncompiled(Regex):
    def __init__(self, *spelled: Any) -> None:
        self._spelled = spelled

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._spelled)
        vars(self).update({each: getattr(compiled, each) for each in _PARTS})
        cast("Any", self).__class__ = Regex  # without `__getattr__`, Python finds attributes faster
        return getattr(self, name)


def regex(spelling: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """A pattern that is compiled on first use, because a command uses only a few of several hundred."""
    return cast("Pattern[AnyStr]", _Uncompiled(spelling, flags))
