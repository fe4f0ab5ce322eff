"""The short names of a session's outputs."""

from __future__ import annotations

from collections.abc import Iterable

from overspill import handles


class OutputNames:
    """A name that an output of the session or of its family has is given to no other: the next one gets a longer name."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._others: dict[str, set[str]] = {}
        """More outputs of a name. Only outputs that were stored before there were names can share one."""
        self._taken: set[str] = set()

    def avoid(self, names: Iterable[str]) -> None:
        """Give none of these names: outputs of the family have them."""
        self._taken.update(names)

    def note(self, id: str, name: str) -> None:
        """An output that was stored earlier."""
        if (holder := self._ids.setdefault(name, id)) != id:
            self._others.setdefault(name, {holder}).add(id)

    def give(self, id: str) -> str:
        """The name of a new output: the same one each time."""
        name = ""
        for chars in range(handles.MIN_NAME_CHARS, handles.MAX_NAME_CHARS + 1):
            name = handles.name(id, chars)
            if name not in self._taken and self._ids.setdefault(name, id) == id:  # one step, for several threads
                break
        return name

    def find(self, name: str) -> set[str]:
        """The ids that have this name."""
        holder = self._ids.get(name)
        return self._others.get(name) or (set() if holder is None else {holder})
