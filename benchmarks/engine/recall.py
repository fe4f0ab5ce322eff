"""How often the built-in engine's selection holds the answer, by source and by kind, on a set of questions with known answers.

    python benchmarks/engine/recall.py SET          or with the path in OVERSPILL_EVALSET
    python benchmarks/engine/recall.py SET --ablate [--by kind]     what each signal is worth, by source or kind
    python SET/score.py --plugin engine_recall:plugin    the set's own scorer, run from benchmarks/

A set is a folder with questions.jsonl (id, doc, source, kind, question, answers, all_of) and, optionally, negatives.jsonl
(questions whose answer is not in the document). A question counts when one of `answers` and all of `all_of` are in the text,
white space and colours aside. Documents are split into halves by the hash of their name: tune on one, check on the other. Of a
set whose questions say which half they are in (`half`), only the seen half is used, unless you ask for the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from overspill.lexical.boost import Boost, Signal
from overspill.lexical.index import Index, build
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.select import Selection, select
from overspill.lexical.signals import SIGNALS
from overspill.types import LIKELY

BUDGETS = (500, 1000, 2000, 4000)
CONFIDENT = LIKELY
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

Question = dict[str, Any]


class Result(NamedTuple):
    question: Question
    budget: int
    recalled: bool
    confidence: float
    seconds: float
    """Processor time."""


def plugin(text: str, question: str, budget_tokens: int, meta: dict[str, str]) -> str:
    """What a scorer calls: the text that would enter a model's context."""
    return select(build(text.encode("utf-8", "surrogatepass")), question, max_tokens=budget_tokens).text


def normal(text: str) -> str:
    return re.sub(r"\s+", " ", ANSI.sub("", text)).strip()


def holds(selection: Selection, question: Question) -> bool:
    text = normal(selection.text)
    return any(normal(answer) in text for answer in question["answers"]) and all(
        normal(part) in text for part in question["all_of"]
    )


def run(
    folder: Path,
    questions: Iterable[Question],
    budgets: Iterable[int],
    judge: Callable[[Selection, Question], bool],
    signals: Sequence[Signal] = SIGNALS,
    ask: Callable[[Question], None] = lambda question: None,
) -> list[Result]:
    """One document after the other, so that only one index is in memory. `ask` is called before each question."""
    results: list[Result] = []
    for doc, asked in groupby(sorted(questions, key=by_doc), by_doc):
        index: Index = build((folder / doc).read_bytes())
        select(index, "")  # cuts the text, and reads its signs of failure
        for question in asked:
            ask(question)
            for budget in budgets:
                start = time.process_time()
                selection = select(index, question["question"], max_tokens=budget, signals=signals)
                seconds = time.process_time() - start
                results.append(Result(question, budget, judge(selection, question), selection.confidence, seconds))
    return results


def by_doc(question: Question) -> str:
    return question["doc"]


class Watched:
    """A signal, and the questions to which it had something to add."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.asked: Question = {}
        self.fired: dict[str, Question] = {}

    def ask(self, question: Question) -> None:
        self.asked = question

    def __call__(self, index: Index, query: Query, ranking: Ranking) -> Boost | None:
        boost = self.signal(index, query, ranking)
        if boost:
            self.fired[self.asked["id"]] = self.asked
        return boost


def ablate(folder: Path, questions: list[Question], by: str) -> None:
    """Points that each signal is worth at two budgets, and the milliseconds that it takes for a question, by source or kind.

    A question to which a signal adds nothing is not asked again without it.
    """
    budgets = (500, 2000)
    watched = [Watched(signal) for signal in SIGNALS]

    def ask(question: Question) -> None:
        for each in watched:
            each.ask(question)

    results = run(folder, questions, budgets, holds, watched, ask)
    fired = {each.signal: list(each.fired.values()) for each in watched}
    whole = group(results, by)
    print(
        f"| signal | {by} | asked | "
        + " | ".join(f"points at {budget}" for budget in budgets)
        + " | ms |\n|---|---|---|---|---|---|"
    )
    for signal in SIGNALS:
        others = tuple(other for other in SIGNALS if other is not signal)
        again = {(result.question["id"], result.budget): result for result in run(folder, fired[signal], budgets, holds, others)}
        without = {
            source: [again.get((result.question["id"], result.budget), result) for result in kept]
            for source, kept in whole.items()
        }
        for source, kept in sorted(whole.items()):
            count = sum(question[by] == source for question in fired[signal])
            worth = [recall(kept, budget) - recall(without[source], budget) for budget in budgets]
            took = 1000 * sum(one.seconds - other.seconds for one, other in zip(kept, without[source], strict=True))
            if count:
                points = " | ".join(f"{points:+.1f}" for points in worth)
                print(f"| {signal.__name__} | {source} | {count} | {points} | {took / len(kept):.1f} |", flush=True)
        means = " | ".join(f"{mean_of_groups(whole, budget) - mean_of_groups(without, budget):+.1f}" for budget in budgets)
        print(f"| {signal.__name__} | mean over {by}s | {len(fired[signal])} | {means} | |", flush=True)


def half(question: Question) -> int:
    return hashlib.sha256(question["doc"].encode()).digest()[-1] % 2


def mean(values: Iterable[bool | float]) -> float:
    listed = list(values)
    return 100 * sum(listed) / len(listed) if listed else float("nan")


def group(results: list[Result], by: str) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.question[by]].append(result)
    return groups


def recall(results: list[Result], budget: int) -> float:
    return mean(result.recalled for result in results if result.budget == budget)


def table(results: list[Result], by: str) -> None:
    groups = group(results, by)
    print(f"\n| {by} | n | " + " | ".join(map(str, BUDGETS)) + " |\n|---|---|" + "---|" * len(BUDGETS))
    for name, chosen in sorted(groups.items()):
        cells = (f"{recall(chosen, budget):.1f}" for budget in BUDGETS)
        print(f"| {name} | {len(chosen) // len(BUDGETS)} | " + " | ".join(cells) + " |")
    macro = (mean_of_groups(groups, budget) for budget in BUDGETS)
    print(f"| mean over {by}s | | " + " | ".join(f"{value:.1f}" for value in macro) + " |")


def mean_of_groups(groups: dict[str, list[Result]], budget: int) -> float:
    return sum(recall(results, budget) for results in groups.values()) / len(groups)


def pooled(results: list[Result]) -> None:
    print("\n| pooled | " + " | ".join(map(str, BUDGETS)) + " |\n|---|" + "---|" * len(BUDGETS))
    for name, wanted in (("all", (0, 1)), ("half A", (0,)), ("half B", (1,))):
        chosen = [result for result in results if half(result.question) in wanted]
        print(f"| {name} | " + " | ".join(f"{mean(r.recalled for r in chosen if r.budget == b):.1f}" for b in BUDGETS) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="SET", nargs="?", type=Path, default=os.environ.get("OVERSPILL_EVALSET", ""))
    parser.add_argument("--ablate", action="store_true", help="switch each signal off in turn")
    parser.add_argument("--by", choices=["source", "kind"], default="source", help="of --ablate (default: source)")
    parser.add_argument("--half", choices=["seen", "unseen"], default="seen", help="of a set that has halves (default: seen)")
    given = parser.parse_args()
    folder = Path(given.folder)
    if not str(given.folder) or not (folder / "questions.jsonl").is_file():
        place = given.folder or "(no path given)"
        sys.exit(f"No question set at {place}: pass a folder with questions.jsonl, or set OVERSPILL_EVALSET.")
    rows = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    questions = [row for row in rows if row.get("half", given.half) == given.half]
    if given.ablate:
        ablate(folder, questions, given.by)
        return
    results = run(folder, questions, BUDGETS, holds)
    table(results, "source")
    table(results, "kind")
    pooled(results)
    right = [result.confidence >= CONFIDENT for result in results if result.recalled and result.budget == 2000]
    print(f"\nconfident ({CONFIDENT}) at 2000 tokens: {mean(right):.1f} % of {len(right)} rightly answered")
    if (folder / "negatives.jsonl").is_file():
        negatives = [json.loads(line) for line in (folder / "negatives.jsonl").open(encoding="utf-8")]
        absent = run(folder, negatives, (2000,), lambda selection, question: False)
        share = mean(result.confidence >= CONFIDENT for result in absent)
        print(f"confident on {share:.1f} % of {len(absent)} whose answer is absent")


if __name__ == "__main__":
    main()
