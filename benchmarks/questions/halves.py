"""Which half a question is in: `seen` may be read while the engine is built, `unseen` is only scored."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.questions.material import Split
from benchmarks.questions.question import Half, Question


def half(identity: str) -> Half:
    """Depends on nothing but the id, so that a question never changes sides."""
    return "seen" if hashlib.sha256(identity.encode()).digest()[0] % 2 == 0 else "unseen"


def divide(questions: Sequence[Question], split: Split) -> dict[str, Half]:
    """The half of each question by its id. If split by document, a document and all of its questions are in one half."""
    if split == "question":
        return {question.id: half(question.id) for question in questions}
    divided: dict[str, Half] = {}
    for kind in sorted({question.kind for question in questions}):
        divided |= divide_documents([question for question in questions if question.kind == kind])
    return divided


def divide_documents(questions: Sequence[Question]) -> dict[str, Half]:
    """The documents with the most questions first, each to the half that has fewer; a hash decides between equals."""
    documents: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        documents[document_of(question)].append(question.id)
    sizes: dict[Half, int] = {"seen": 0, "unseen": 0}
    divided: dict[str, Half] = {}
    order = sorted(documents, key=lambda name: (-len(documents[name]), hashlib.sha256(name.encode()).digest()))
    for name in order:
        difference = sizes["seen"] - sizes["unseen"]
        side: Half = half(name) if not difference else "unseen" if difference > 0 else "seen"
        sizes[side] += len(documents[name])
        divided |= dict.fromkeys(documents[name], side)
    return divided


def document_of(question: Question) -> str:
    """Code is the same document at two commits: its repository counts."""
    return question.source if question.kind == "code" else question.doc
