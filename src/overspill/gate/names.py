"""The short names of a session's outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Lock

from overspill import handles

_CHARS_WITHOUT_LIST = 10
"""50 random bits: among a million outputs of a family, one in a billion new ones would get a name that is taken."""


class OutputNames:
    """A name that an output of the session or of its family has is given to no other: the next one gets a longer name.

    `list_taken` lists the names that outputs of the family have. It is called when the first name is given, which may block: most
    sessions store nothing and need not read the journals of the others. If they are too many to be listed, it returns None, and
    names are so long that no two are equal.
    """

    def __init__(self, list_taken: Callable[[], Iterable[str] | None] = tuple) -> None:
        self._ids: dict[str, str] = {}
        self._others: dict[str, set[str]] = {}
        """More outputs of a name. Only outputs that were stored before there were names can share one."""
        self._earlier: list[tuple[str, int]] = []
        self._list_taken = list_taken
        self._lock = Lock()

    @cached_property
    def _taken(self) -> frozenset[str] | None:
        found = self._list_taken()
        return None if found is None else frozenset(found)

    def note(self, id: str, chars: int = handles.MIN_NAME_CHARS) -> None:
        """An output that was stored earlier. There may be many, so their names are made only when someone asks for one."""
        self._earlier.append((id, chars))

    def _spell_earlier(self) -> None:
        with self._lock:
            earlier, self._earlier = self._earlier, []
            for id, chars in earlier:
                if not handles.is_uuid(id):  # damaged
                    continue
                name = handles.name(id, chars)
                if (holder := self._ids.setdefault(name, id)) != id:
                    self._others.setdefault(name, {holder}).add(id)

    def give(self, id: str) -> str:
        """The name of a new output: the same one each time."""
        self._spell_earlier()
        with self._lock:
            taken = self._taken
        name = ""
        fewest = handles.MIN_NAME_CHARS if taken is not None else _CHARS_WITHOUT_LIST
        for chars in range(fewest, handles.MAX_NAME_CHARS + 1):
            name = handles.name(id, chars)
            if name not in (taken or ()) and self._ids.setdefault(name, id) == id:  # one step, for several threads
                break
        return name

    def find(self, name: str) -> set[str]:
        """The ids that have this name."""
        self._spell_earlier()
        holder = self._ids.get(name)
        return self._others.get(name) or (set() if holder is None else {holder})
