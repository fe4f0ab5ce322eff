"""Chat histories and threads: questions that people asked in them or about them, and the words that answered.

A quote marks the answer: one in `picks/`, or one of the material. Where the title of a thread asks, it is taken out of the
document.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import Any

from benchmarks.questions.material import Asked, QuestionSet, Threads
from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Sources

TITLE = "Title: "  # begins the line that has a thread's title


def build(sources: Sources, chosen: QuestionSet) -> list[Entry]:
    by_document: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for pick in read_picks(chosen.name, "threads"):
        by_document[pick["from"], pick["document"]].append(pick)
    entries: list[Entry] = []
    for (sort, document), picks in by_document.items():
        threads = chosen.threads[sort]
        asked = [ask(threads, sources, pick) for pick in picks]
        text = without_titles(threads.read(sources, document), {question for question, _ in asked})
        entries += [as_entry(pick, threads, one, text) for pick, one in zip(picks, asked, strict=True)]
    return entries


def ask(threads: Threads, sources: Sources, pick: dict[str, Any]) -> Asked:
    if threads.ask is None:
        return Asked(pick["question"], tuple(pick["quotes"]))
    asked = threads.ask(sources, pick["document"], pick["number"])
    return Asked(asked.question, tuple(pick.get("quotes", asked.quotes)))


def without_titles(text: str, titles: set[str]) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not (line.startswith(TITLE) and line.removeprefix(TITLE).strip() in titles))


def as_entry(pick: dict[str, Any], threads: Threads, asked: Asked, text: str) -> Entry:
    name = f"{pick['from']}-{re.sub(r'[^0-9A-Za-z]+', '-', pick['document'])}"
    repository = threads.find_source(pick["document"])
    question = Question(
        id=f"threads-{name}-{hashlib.sha256(asked.question.encode()).hexdigest()[:8]}",
        kind="threads",
        source=f"{repository.name} {pick['document'].rpartition(' ')[0]}" if threads.is_named_by_list else repository.name,
        licence=repository.licence,
        doc=f"docs/threads-{name}.txt",
        question=asked.question,
        answers=tuple(found for quote in asked.quotes if (found := find_quote(text, quote))),
        tool_name="read_thread",
        note=pick.get("note", ""),
    )
    return Entry(question, text)


def find_quote(text: str, quote: str) -> str | None:
    """The quote as the text breaks its lines."""
    found = re.search(r"\s+".join(map(re.escape, quote.split())), text)
    return found.group() if found else None
