"""One module a kind; each gives the entries it finds in its sources."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.questions.kinds import attributes, code, databases, documentation, lists, threads
from benchmarks.questions.question import Entry, Kind
from benchmarks.questions.sources import Sources

Builder = Callable[[Sources], list[Entry]]

BUILDERS: dict[Kind, Builder] = {
    "attributes": attributes.build,
    "code": code.build,
    "databases": databases.build,
    "documentation": documentation.build,
    "lists": lists.build,
    "threads": threads.build,
}
