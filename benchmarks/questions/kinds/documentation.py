"""Documentation: a question of a project's FAQ, and the sentence below it that answers.

The document is the FAQ with other pages of the same documentation. The headings that ask are taken out, so that only the answer
can be found.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict

from benchmarks.questions.material import Manual, QuestionSet
from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sections import find_sections, without_headings
from benchmarks.questions.sources import Git, Repository, SourceMissing, Sources


def build(sources: Sources, chosen: QuestionSet) -> list[Entry]:
    asked: dict[str, dict[str, int]] = defaultdict(dict)
    for pick in read_picks(chosen.name, "documentation"):
        asked[pick["repo"]][pick["heading"]] = pick["sentence"]
    return [entry for name, headings in asked.items() for entry in ask(chosen.manuals[name], headings, sources)]


def ask(manual: Manual, headings: dict[str, int], sources: Sources) -> list[Entry]:
    git = sources.git(manual.repository)
    pages = [git.read(path) for path in manual.faq]
    answers: dict[str, str] = {}
    for page in pages:
        for section in find_sections(page, is_markdown=manual.is_markdown):
            if section.heading in headings:
                answers[section.heading] = section.sentences(page)[headings[section.heading]]
    if missing := set(headings) - set(answers):
        raise SourceMissing(f"{manual.repository.name} does not ask: {sorted(missing)[0]}")
    questions_removed = [without_headings(page, set(headings), is_markdown=manual.is_markdown) for page in pages]
    text = "\n".join([*questions_removed, *(git.read(path) for path in other_pages(git, manual))])
    return [Entry(as_question(manual.repository, heading, answer), text) for heading, answer in answers.items()]


def other_pages(git: Git, manual: Manual) -> list[str]:
    """Leaves out change logs, which do not document the present state."""
    listed = [path for name in manual.others for path in (git.list(name) if name.endswith("/") else [name])]
    return [
        path for path in listed if path.endswith((".md", ".rst")) and path not in manual.faq and "change" not in path.casefold()
    ]


def as_question(repository: Repository, heading: str, answer: str) -> Question:
    name = re.sub(r"\W+", "-", repository.name)
    return Question(
        id=f"documentation-{name}-{hashlib.sha256(heading.encode()).hexdigest()[:8]}",
        kind="documentation",
        source=repository.name,
        licence=repository.licence,
        doc=f"docs/documentation-{name}.txt",
        question=heading,
        answers=(answer,),
        tool_name="fetch_docs",
        note="heading of its FAQ",
    )
