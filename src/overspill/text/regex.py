"""Patterns written in the source."""

from __future__ import annotations

import re
from re import Match, Pattern, escape
from typing import Any, AnyStr, cast

__all__ = ["Match", "Pattern", "Regex", "escape", "regex"]


class Regex:
    """A compiled pattern, as far as the source uses one."""


class _Uncompiled(Regex):
    def __init__(self, *spelled: Any) -> None:
        self._spelled = spelled

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._spelled)
        vars(self).update({each: getattr(compiled, each) for each in dir(compiled) if not each.startswith("_")})
        cast("Any", self).__class__ = Regex  # a class without `__getattr__`, whose attributes Python finds sooner
        return getattr(self, name)


def regex(spelling: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """A pattern that is compiled when it is first used: a command uses few of several hundred."""
    return cast("Pattern[AnyStr]", _Uncompiled(spelling, flags))
