"""One module a kind; each gives the entries it finds in the sources of a set."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.questions.kinds import attributes, code, databases, documentation, lists, threads
from benchmarks.questions.material import QuestionSet
from benchmarks.questions.question import Entry, Kind
from benchmarks.questions.sources import Sources

Builder = Callable[[Sources, QuestionSet], list[Entry]]

BUILDERS: dict[Kind, Builder] = {
    "attributes": attributes.build,
    "code": code.build,
    "databases": databases.build,
    "documentation": documentation.build,
    "lists": lists.build,
    "threads": threads.build,
}
