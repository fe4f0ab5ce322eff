"""Databases as JSON with joins: the answer is reached by following an id from one table to another.

The picks are query templates along the databases' foreign keys. Each gives rows (subject, answers), and the hash of a row decides
whether it is used.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from typing import Any

from benchmarks.questions.material import Database, QuestionSet
from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Sources
from benchmarks.questions.tables import open_tables, render

MAX_ANSWERS = 5  # more would not fit a small budget


def build(sources: Sources, chosen: QuestionSet) -> list[Entry]:
    entries: list[Entry] = []
    picks = read_picks(chosen.name, "databases")
    for database in chosen.databases.values():
        tables = database.load(sources)
        text, connection = render(tables, database.indent), open_tables(tables)
        for number, pick in enumerate(pick for pick in picks if pick["database"] == database.name):
            entries += [Entry(question, text) for question in ask(database, pick, number, connection)]
    return entries


def ask(database: Database, pick: dict[str, Any], number: int, connection: sqlite3.Connection) -> list[Question]:
    found: dict[str, list[str]] = defaultdict(list)
    for subject, *answers in connection.execute(pick["sql"]):
        found[str(subject)] += [str(answer) for answer in answers if str(answer) not in found[str(subject)]]
    usable = [subject for subject, answers in found.items() if len(answers) <= MAX_ANSWERS]
    chosen = sorted(usable, key=lambda subject: hashlib.sha256(f"{database.name}{number}{subject}".encode()).digest())
    return [as_question(database, pick, number, subject, found[subject]) for subject in chosen[: pick["take"]]]


def as_question(database: Database, pick: dict[str, Any], number: int, subject: str, answers: list[str]) -> Question:
    return Question(
        id=f"databases-{database.name}-{number}-{hashlib.sha256(subject.encode()).hexdigest()[:8]}",
        kind="databases",
        source=database.source.name,
        licence=database.source.licence,
        doc=f"docs/databases-{database.name}.json",
        question=pick["question"].format(subject),
        answers=tuple(answers),
        all_of=tuple(answers) if len(answers) > 1 else (),
        tool_name="dump_database",
        obtained="derived",
        note=pick["sql"],
    )
