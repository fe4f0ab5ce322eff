"""A question, its answers, and the files that a set is kept in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["code", "threads", "databases", "attributes", "lists", "documentation"]
Half: TypeAlias = Literal["seen", "unseen"]
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class Question:
    id: str
    kind: Kind
    source: str  # the repository or package it comes from
    licence: str
    doc: str  # the document's path in the set
    question: str
    answers: tuple[str, ...]  # one of them is enough
    all_of: tuple[str, ...] = ()  # all of them are needed as well
    tool_name: str = "read_file"
    obtained: str = "human"  # human: somebody asked it; derived: made from a schema and its data
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """A question together with its document, before it is checked and written."""

    question: Question
    text: str


def normal(text: str) -> str:
    """White space and colours aside, as a scorer compares."""
    return re.sub(r"\s+", " ", ANSI.sub("", text)).strip()


def is_recalled(question: Question, text: str) -> bool:
    shown = normal(text)
    return any(normal(answer) in shown for answer in question.answers) and all(normal(part) in shown for part in question.all_of)


def write_set(folder: Path, entries: Iterable[Entry], halves: Mapping[str, Half]) -> None:
    rows: list[dict[str, Any]] = []
    for entry in entries:
        path = folder / entry.question.doc
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entry.text, encoding="utf-8", newline="")
        rows.append(asdict(entry.question) | {"half": halves[entry.question.id]})
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in sorted(rows, key=lambda row: row["id"]))
    (folder / "questions.jsonl").write_text("".join(lines), encoding="utf-8")


def read_set(folder: Path, half: Half | None = None) -> list[Question]:
    questions: list[Question] = []
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        fields: dict[str, Any] = {key: tuple(value) if key in ("answers", "all_of") else value for key, value in row.items()}
        if half in (None, fields.pop("half")):
            questions.append(Question(**fields))
    return questions
