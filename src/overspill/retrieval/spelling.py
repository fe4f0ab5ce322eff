"""Finds what a short name means in one session: among its own outputs, and those of its family."""

from __future__ import annotations

from overspill import handles
from overspill.errors import AmbiguousName, UnknownHandle
from overspill.gate.names import OutputNames
from overspill.retrieval.group import SessionGroup


class NameFinder:
    """The session's own outputs come first: their names were chosen so that no output of the family had them."""

    def __init__(self, session: str, names: OutputNames, family: SessionGroup | None) -> None:
        self._session = session
        self._names = names
        self._family = family
        self._relatives: dict[str, str] = {}

    def spell_out(self, spelling: str) -> str:
        """The handle of the output with this short name. Any other spelling is returned as given. May block."""
        name = handles.parse_name(spelling)
        if name is None:
            return spelling
        found = {handles.handle(self._session, id) for id in self._names.find(name)}
        return self._only(name, found) if found or self._family is None else self._find_relative(name, self._family)

    def _find_relative(self, name: str, family: SessionGroup) -> str:
        if name not in self._relatives:  # the journals of the family are read once for each name
            self._relatives[name] = self._only(name, family.find_named(name))
        return self._relatives[name]

    def _only(self, name: str, found: set[str]) -> str:
        if len(found) > 1:
            raise AmbiguousName(name, sorted(found))
        if not found:
            raise UnknownHandle(name)
        return found.pop()
