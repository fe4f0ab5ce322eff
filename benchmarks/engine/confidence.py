"""Whether the engine's confidence means something: fits its weights, and checks them on questions not used for that.

    python benchmarks/engine/confidence.py SET [SET ...] [--half seen|unseen] [--svg FILE]

A set is a folder with questions.jsonl (id, doc, kind, question, answers, all_of, and `half` if it has halves) and, optionally,
negatives.jsonl. Each question goes to its document at 2,000 tokens, and to another document of the same kind that does not have
the answer. The hash of a question's id decides whether it is used to fit the weights or to check them.
The check is of the weights in `overspill.lexical.confidence`; copy what the fit prints there after the engine has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from recall import normal

from overspill.lexical.confidence import CONFIDENCE_WEIGHTS, ConfidenceWeights, Features, measure_features, weigh
from overspill.lexical.failures import find_sign_places
from overspill.lexical.index import Index, build
from overspill.lexical.plan import plan
from overspill.lexical.query import parse
from overspill.lexical.rank import rank
from overspill.lexical.select import select
from overspill.lexical.signals import SIGNALS, compares_rows
from overspill.types import LIKELY, UNLIKELY

BUDGET = 2000
CONFIDENT = LIKELY
MIN_RIGHT = 0.83  # of confident answers, while fitting: more than is promised, because the check will find less
MAX_ABSENT = 0.08  # of absent answers of each kind
STEPS, RATE, SHRINKAGE = 1500, 0.3, 0.5
NAMES = Features.__struct_fields__

Question = dict[str, Any]


class Case(NamedTuple):
    kind: str
    is_check: bool
    is_absent: bool
    is_right: bool
    features: Features
    confidence: float


class Document:
    def __init__(self, path: Path) -> None:
        self.index: Index = build(path.read_bytes())
        self.text = normal(path.read_text("utf-8", "replace"))


def has_answer(text: str, question: Question) -> bool:
    answers, parts = question.get("answers", []), question.get("all_of", [])
    return (not answers or any(normal(answer) in text for answer in answers)) and all(normal(part) in text for part in parts)


def has_any_answer(text: str, question: Question) -> bool:
    return any(normal(part) in text for part in (*question.get("answers", []), *question.get("all_of", [])))


def draw(identity: str) -> int:
    return hashlib.sha256(identity.encode()).digest()[-1]


def collect(folder: Path, half: str) -> Iterator[Case]:
    rows = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    questions = [row for row in rows if row.get("half", half) == half]
    documents: dict[str, Document] = {}

    def open_document(name: str) -> Document:
        if name not in documents:
            documents[name] = Document(folder / name)
        return documents[name]

    names: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        names[question["kind"]].add(question["doc"])
    for question in questions:
        yield ask(open_document(question["doc"]), question, is_absent=False)
        others = sorted(names[question["kind"]] - {question["doc"]}, key=lambda name: (draw(question["id"] + name), name))
        other = next((name for name in others if not has_any_answer(open_document(name).text, question)), None)
        if other:
            yield ask(open_document(other), question, is_absent=True)
    if (folder / "negatives.jsonl").is_file():
        for line in (folder / "negatives.jsonl").open(encoding="utf-8"):
            question = json.loads(line)
            yield ask(open_document(question["doc"]), question, is_absent=True)


def ask(document: Document, question: Question, *, is_absent: bool) -> Case:
    asked = parse(question["question"])
    find_places = find_sign_places if asked.failure and document.index.traits.is_program_output else None
    index = document.index.focus(asked.terms, find_places=find_places, compares_rows=compares_rows(document.index, asked))
    found = rank(index, asked)
    features = measure_features(index, asked, found, plan(index, asked, found, SIGNALS).evidence)
    selection = select(document.index, question["question"], max_tokens=BUDGET)
    is_right = not is_absent and has_answer(normal(selection.text), question)
    return Case(question["kind"], draw(question["id"]) % 2 == 1, is_absent, is_right, features, selection.confidence)


def fit(cases: Sequence[Case]) -> ConfidenceWeights:
    """Logistic regression, with the base lowered until enough of the confident answers are right."""
    rows = [(1.0, *(getattr(case.features, name) for name in NAMES)) for case in cases]
    weights = [0.0] * (1 + len(NAMES))
    for _ in range(STEPS):
        gradient = [0.0, *(SHRINKAGE * weight for weight in weights[1:])]
        for row, case in zip(rows, cases, strict=True):
            odds = sum(weight * value for weight, value in zip(weights, row, strict=True))
            error = 1 / (1 + math.exp(-odds)) - case.is_right
            gradient = [slope + error * value for slope, value in zip(gradient, row, strict=True)]
        weights = [weight - RATE * slope / len(cases) for weight, slope in zip(weights, gradient, strict=True)]
    fitted = ConfidenceWeights(*weights)
    for hundredths in range(300):
        lowered = ConfidenceWeights(fitted.base - hundredths / 100, *weights[1:])
        if keeps_promise([case._replace(confidence=weigh(case.features, lowered)) for case in cases]):
            return lowered
    return fitted


def keeps_promise(cases: Sequence[Case]) -> bool:
    sure = [case for case in cases if case.confidence >= CONFIDENT]
    absent = count_absent(cases)
    return share(sure, lambda case: case.is_right) >= MIN_RIGHT and all(
        wrong <= max(1, MAX_ABSENT * all_) for wrong, all_ in absent.values()
    )


def count_absent(cases: Sequence[Case]) -> dict[str, tuple[int, int]]:
    """By kind: absent answers that are confident, and all of them."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for case in cases:
        if case.is_absent:
            groups[case.kind].append(case.confidence >= CONFIDENT)
    return {kind: (sum(sure), len(sure)) for kind, sure in sorted(groups.items())}


def share(cases: Sequence[Case], holds: Callable[[Case], bool]) -> float:
    return sum(map(holds, cases)) / len(cases) if cases else 1.0


def measure_area(cases: Sequence[Case]) -> float:
    """How often a right answer has more confidence than a wrong or absent one; those that have the same count half."""
    right = [case.confidence for case in cases if case.is_right]
    others = sorted(case.confidence for case in cases if not case.is_right)
    below = sum(bisect_left(others, each) + bisect_right(others, each) for each in right) / 2
    return below / max(1, len(right) * len(others))


def bins(cases: Sequence[Case]) -> list[tuple[float, float, int, float]]:
    """Lowest and highest confidence of a fifth, how many answers are in it, and what share of them is right."""
    edges = [number / 5 for number in range(6)]
    groups = [
        [case for case in cases if low <= case.confidence < high or (high == 1 and case.confidence == 1)]
        for low, high in pairwise(edges)
    ]
    return [
        (low, high, len(group), share(group, lambda case: case.is_right))
        for (low, high), group in zip(pairwise(edges), groups, strict=True)
    ]


def report(name: str, cases: Sequence[Case]) -> None:
    sure = [case for case in cases if case.confidence >= CONFIDENT]
    right = [case for case in cases if case.is_right]
    print(f"\n{name}: {len(cases)} answers, {share(sure, lambda case: case.is_right):.1%} of {len(sure)} confident ones right;")
    print(f"{share(right, lambda case: case.confidence >= CONFIDENT):.1%} of {len(right)} right ones confident")
    print(f"area under the curve {measure_area(cases):.3f} for right ones against all others")
    print("\n| step | answers | right |\n|---|---:|---:|")
    for step, low, high in (("unlikely", 0.0, UNLIKELY), ("possible", UNLIKELY, LIKELY), ("likely", LIKELY, math.inf)):
        group = [case for case in cases if low <= case.confidence < high]
        print(f"| {step} | {len(group)} | {share(group, lambda case: case.is_right):.0%} |")
    print("\n| confidence | answers | right |\n|---|---:|---:|")
    for low, high, count, ratio in bins(cases):
        print(f"| {low:.1f} to {high:.1f} | {count} | {f'{ratio:.0%}' if count else '–'} |")
    print("\n| kind | absent | confident |\n|---|---:|---:|")
    for kind, (wrong, every) in count_absent(cases).items():
        print(f"| {kind} | {every} | {wrong} ({wrong / every:.0%}) |")


def draw_plot(cases: Sequence[Case]) -> str:
    """Bars for the share of right answers in each fifth of confidence, and a line where the two would be equal."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="300" viewBox="0 0 420 300" role="img" '
        'aria-label="Share of right answers by confidence">',
        '<rect width="420" height="300" fill="#fff"/><g font-family="sans-serif" font-size="12" fill="#333">',
    ]
    for number, (low, high, count, ratio) in enumerate(bins(cases)):
        left, height = 60 + number * 68, 200 * ratio if count else 0
        parts.append(f'<rect x="{left}" y="{230 - height:.0f}" width="56" height="{height:.0f}" fill="#4a7fb5"/>')
        parts.append(f'<text x="{left + 28}" y="{224 - height:.0f}" text-anchor="middle">{ratio:.0%} of {count}</text>')
        parts.append(f'<text x="{left + 28}" y="248" text-anchor="middle">{low:.1f}–{high:.1f}</text>')
    parts += [
        '<line x1="54" y1="230" x2="400" y2="230" stroke="#333"/><line x1="54" y1="30" x2="54" y2="230" stroke="#333"/>',
        '<line x1="54" y1="230" x2="394" y2="30" stroke="#b55" stroke-dasharray="4 4"/>',
        '<text x="225" y="275" text-anchor="middle">confidence</text>',
        '<text x="20" y="130" text-anchor="middle" transform="rotate(-90 20 130)">right answers</text></g></svg>',
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET")
    parser.add_argument("--half", choices=["seen", "unseen"], default="seen", help="of sets that have halves (default: seen)")
    parser.add_argument("--svg", type=Path, help="write a plot of the check")
    given = parser.parse_args()
    for folder in given.sets:
        if not (folder / "questions.jsonl").is_file():
            sys.exit(f"No question set at {folder}: pass folders with questions.jsonl.")
    cases = [case for folder in given.sets for case in collect(folder, given.half)]
    fitting, checking = [case for case in cases if not case.is_check], [case for case in cases if case.is_check]
    print("in use: ", CONFIDENCE_WEIGHTS)
    if given.half == "seen":
        fitted = fit(fitting)
        print("fitted: ", ConfidenceWeights(*(round(getattr(fitted, name), 2) for name in ConfidenceWeights.__struct_fields__)))
        report("fit, with the weights fitted", [case._replace(confidence=weigh(case.features, fitted)) for case in fitting])
        report("check, with the weights fitted", [case._replace(confidence=weigh(case.features, fitted)) for case in checking])
    report("check, with the weights in use", checking)
    if given.svg:
        given.svg.write_text(draw_plot(checking), "utf-8")


if __name__ == "__main__":
    main()
