"""Finds what a short name means in one session: among its own outputs, and those of its family."""

from __future__ import annotations

from overspill import handles
from overspill.errors import AmbiguousName, UnknownHandle
from overspill.gate.names import OutputNames
from overspill.retrieval.group import SessionGroup


def spell_out(spelling: str, session: str, names: OutputNames, family: SessionGroup | None) -> str:
    """The handle of the output with this short name. Any other spelling is returned as given. May block.

    The session's own outputs come first: their names were chosen so that no output of the family had them.
    """
    name = handles.parse_name(spelling)
    if name is None:
        return spelling
    found = {handles.handle(session, id) for id in names.find(name)}
    if not found and family is not None:
        found = family.find_named(name)
    if len(found) > 1:
        raise AmbiguousName(name, sorted(found))
    if not found:
        raise UnknownHandle(spelling)
    return found.pop()
