"""What a set is made of: its pinned sources of each kind, and how its questions are divided into halves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from benchmarks.questions.sources import Package, Repository, Sources
from benchmarks.questions.tables import Tables

Split: TypeAlias = Literal["question", "document"]


@dataclass(frozen=True)
class Database:
    name: str
    source: Repository | Package
    load: Callable[[Sources], Tables]
    indent: int | None = None  # None: a row a line


@dataclass(frozen=True)
class Listing:
    source: Repository | Package
    path: str
    is_compact: bool = False
    inside: str = ""  # the key that the objects are below
    is_lines: bool = False  # an object a line, in the file and in the document


@dataclass(frozen=True)
class Manual:
    repository: Repository
    faq: tuple[str, ...]
    others: tuple[str, ...] = ()  # files, or folders whose pages are all taken

    @property
    def is_markdown(self) -> bool:
        return not self.faq[0].endswith(".rst")


class Asked(NamedTuple):
    """A question that the material numbers, and the words in it that answer, where it says which."""

    question: str
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Threads:
    """Threads of one sort; a document is what `read` gives for its name."""

    find_source: Callable[[str], Repository]
    read: Callable[[Sources, str], str]
    ask: Callable[[Sources, str, int], Asked] | None = None
    is_named_by_list: bool = False  # the source of a question is a list of the repository


@dataclass(frozen=True)
class QuestionSet:
    name: str  # of its folder in picks/
    split: Split
    code_licences: dict[str, str]
    pages: dict[str, Repository]
    databases: dict[str, Database]
    listings: dict[str, Listing]
    manuals: dict[str, Manual]
    threads: dict[str, Threads]
    least: int = 40  # questions of each kind
