"""How often a test looked at the disk."""

import os
from collections.abc import Callable
from typing import Any

import pytest


class Looks:
    """What was opened and listed. An audit hook would see more, but stays for as long as the process, and Python 3.11 loses
    threads that begin together while one is installed and coverage is measured."""

    def __init__(self) -> None:
        self.opened = 0
        self.listed: list[int] = []
        """The inodes of the directories."""

    @property
    def count(self) -> int:
        return self.opened + len(self.listed)

    def open(self, really: Callable[..., int]) -> Callable[..., int]:
        def counted(*args: object, **kwargs: object) -> int:
            self.opened += 1
            return really(*args, **kwargs)

        return counted

    def list(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def counted(place: int | str | os.PathLike[str] = ".") -> Any:
            self.listed.append(os.stat(place).st_ino)
            return really(place)

        return counted


def count_looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks = Looks()
    monkeypatch.setattr(os, "open", looks.open(os.open))
    monkeypatch.setattr(os, "listdir", looks.list(os.listdir))
    monkeypatch.setattr(os, "scandir", looks.list(os.scandir))
    return looks
