"""Strict recall under token budgets, per kind and as the mean over kinds. Tokens are characters / 4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from benchmarks.questions.passages import TOKENIZERS, FullTextIndex
from benchmarks.questions.question import Question, is_recalled
from overspill import extract

ENGINE = "extract"


class Result(NamedTuple):
    question: Question
    way: str
    budget: int
    is_right: bool
    characters: int


def search_document(text: str, questions: Sequence[Question], budgets: Sequence[int]) -> list[Result]:
    results: list[Result] = []
    for tokenizer in TOKENIZERS:
        index = FullTextIndex(text, tokenizer)
        for question in questions:
            for budget in budgets:
                shown = index.search(question.question, budget)
                results.append(Result(question, f"fts5 {tokenizer}", budget, is_recalled(question, shown), len(shown)))
    return results


async def ask_engine(content: bytes, questions: Sequence[Question], budgets: Sequence[int]) -> list[Result]:
    results: list[Result] = []
    for question in questions:
        for budget in budgets:
            found = await extract(content, question.question, max_tokens=budget)
            results.append(Result(question, ENGINE, budget, is_recalled(question, found.text), len(found.text)))
    return results


def score_set(folder: Path, questions: Sequence[Question], budgets: Sequence[int], with_engine: bool) -> list[Result]:
    by_document: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_document[question.doc].append(question)
    results: list[Result] = []
    for document, asked in sorted(by_document.items()):
        content = (folder / document).read_bytes()
        results += search_document(content.decode("utf-8"), asked, budgets)
        if with_engine:
            results += anyio.run(ask_engine, content, asked, budgets)
    return results


def recall(results: Sequence[Result]) -> float:
    return 100 * sum(result.is_right for result in results) / len(results) if results else float("nan")


def mean_over_kinds(results: Sequence[Result]) -> float:
    kinds = sorted({result.question.kind for result in results})
    return sum(recall([result for result in results if result.question.kind == kind]) for kind in kinds) / max(1, len(kinds))


def render(results: Sequence[Result]) -> str:
    """A table: a line a kind, a column for each way and budget."""
    columns = sorted({(result.budget, result.way) for result in results})
    cells = {column: [result for result in results if (result.budget, result.way) == column] for column in columns}
    lines = ["| kind | n | " + " | ".join(f"{way} at {budget}" for budget, way in columns) + " |"]
    lines.append("|---|---|" + "---|" * len(columns))
    for kind in sorted({result.question.kind for result in results}):
        chosen = [[result for result in cells[column] if result.question.kind == kind] for column in columns]
        lines.append(f"| {kind} | {len(chosen[0])} | " + " | ".join(f"{recall(part):.1f}" for part in chosen) + " |")
    means = " | ".join(f"{mean_over_kinds(cells[column]):.1f}" for column in columns)
    sizes = " | ".join(f"{sum(r.characters for r in cells[c]) / max(1, len(cells[c])) / 4:.0f}" for c in columns)
    return "\n".join([*lines, f"| mean over kinds | | {means} |", f"| tokens shown, mean | | {sizes} |"])
