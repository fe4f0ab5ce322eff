"""How often the built-in engine's selection holds the answer, by source and by kind, on a set of questions with known answers.

    python benchmarks/engine/recall.py SET          or with the path in OVERSPILL_EVALSET
    python benchmarks/engine/recall.py SET... --ablate [--every 4]     the answers that are lost without each mechanism
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
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast

from overspill.lexical.index import Index, build
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
) -> list[Result]:
    """One document after the other, so that only one index is in memory."""
    results: list[Result] = []
    for doc, asked in groupby(sorted(questions, key=by_doc), by_doc):
        index: Index = build((folder / doc).read_bytes())
        select(index, "")  # cuts the text, and reads its signs of failure
        for question in asked:
            for budget in budgets:
                start = time.process_time()
                selection = select(index, question["question"], max_tokens=budget)
                seconds = time.process_time() - start
                results.append(Result(question, budget, judge(selection, question), selection.confidence, seconds))
    return results


def by_doc(question: Question) -> str:
    return question["doc"]


MECHANISMS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "related words": ("words", "read_related", dict),
    "keywords of code": ("scan", "read_keywords", dict),
    "quoted examples": ("query", "_split_examples", lambda question: (question, [])),
    "task words": ("rank", "_drop_task_words", lambda terms: terms),
    "phrases": ("rank", "_score_phrases", lambda *_: {}),
    "definitions": ("clues", "score_definitions", lambda *_: {}),
    "names in one place": ("clues", "find_sole_places", lambda *_, **__: set[int]()),
    "yes or no": ("clues", "favour_verdicts", lambda index, query, scores: scores),
    "flow: words beside": ("flow", "_score_beside", lambda *_: ()),
    "flow: sections": ("flow", "_score_sections", lambda *_: ()),
    "flow: what follows": ("flow", "_list_following", lambda *_: ()),
    "flow: replies": ("flow", "_find_replies", lambda *_: ()),
    "repeats": ("reply.repeats", "move_repeats", lambda index, order: order),
    "part of the last record": ("reply.fill", "BudgetFill.shorten", lambda *_: []),
    "members that tell": ("reply.trim", "_list_telling_members", lambda *_: []),
    "members that name": ("reply.trim", "_list_naming", lambda *_: []),
    "noise": ("reply.repeats", "leave_out_noise", lambda index, steps, *_: steps),
    "counts": ("signals.count", "boost_counts", lambda *_: None),
    "failures": ("signals.failure", "boost_failures", lambda *_: None),
    "failures: where causes are": ("signals.failure", "_plan_causes", lambda *_: []),
    "failures: all that failed": ("signals.failure", "_plan_failures", lambda *_: []),
    "facts": ("signals.facts", "boost_facts", lambda *_: None),
    "facts: sheets": ("signals.facts", "_list_sheets", lambda *_: {}),
    "facts: values asked for": ("signals.facts", "_find_asked_value", lambda *_: None),
    "rows": ("rows.signal", "boost_rows", lambda *_: None),
    "rows: connected": ("rows.connect", "connect", lambda *_: ([], [])),
    "rows: where mentions meet": ("rows.connect", "_Connector.find_meeting", lambda *_: []),
    "rows: ways on from a meeting": ("rows.connect", "_Connector._list_ways_on", lambda *_: []),
    "rows: which row is meant": ("rows.connect", "_Connector._is_only", lambda *_: True),
    "rows: named column that refers": ("rows.connect", "_Connector._is_named", lambda *_: False),
    "rows: short numbers": ("rows.mentions", "Question.is_asked", lambda *_: False),
    "rows: named": ("rows.connect", "_Connector.list_named", lambda *_: ()),
    "rows: anchors": ("rows.mentions", "find_anchors", lambda *_: []),
    "rows: several references": ("rows.connect", "_Connector._list_best", lambda *_: {}),
    "rows: cells in other forms": ("rows.mentions", "Question.find_forms", lambda *_: frozenset[int]()),
    "rows: what refers to them": ("rows.connect", "_Connector._list_referring", lambda *_: ()),
    "rows: keys without a name": ("rows.relations", "_take_other_key", lambda relation, _: relation),
    "rows: words of keys": ("rows.relations", "_strip_key_words", lambda words: words),
    "rows: filtered": ("rows.signal", "find_filtered_rows", lambda *_: []),
    "rows: values that are said": ("rows.signal", "_measure_said", lambda *_: {}),
    "rows: comparisons": ("rows.conditions", "_find_comparisons", lambda *_: ()),
    "rows: exclusions": ("rows.conditions", "_find_exclusions", lambda *_: ()),
    "rows: ordered by a column": ("rows.ordering", "_order_by_value", lambda *_: []),
    "rows: ordered by date": ("rows.ordering", "_order_by_date", lambda *_: []),
    "rows: ordered by place, or sizes of a listing": ("rows.ordering", "_order_without_column", lambda *_: []),
}
"""Where each mechanism of the engine is, and what it says when it is switched off."""


READ_ONCE = ("rows: keys without a name", "rows: words of keys")
"""What an index remembers by then, so that it needs another one."""


class Mechanism:
    """A function of the engine, wherever it was imported to, which can be switched off."""

    def __init__(self, name: str) -> None:
        module, path, self._nothing = MECHANISMS[name]
        home: Any = import_module(f"overspill.lexical.{module}")
        *owners, self._attribute = path.split(".")
        for owner in owners:
            home = getattr(home, owner)
        self._function = getattr(home, self._attribute)
        modules = [each for name, each in sys.modules.items() if name.startswith("overspill.lexical")]
        self._places = [place for place in (home, *modules) if getattr(place, self._attribute, None) is self._function]
        self.has_said_something = False

    def watch(self, *, is_kept: bool) -> None:
        self.has_said_something &= is_kept

        def watched(*given: Any, **named: Any) -> Any:
            said = self._function(*given, **named)
            if isinstance(said, Iterator):
                said = iter(listed := list(cast("Iterator[Any]", said)))
                self.has_said_something |= bool(listed)
            elif said is not None and said != self._nothing(*given, **named):
                self.has_said_something = True
            return said

        self.replace(watched)

    def switch_off(self) -> None:
        self.replace(self._nothing)

    def restore(self) -> None:
        self.replace(self._function)

    def replace(self, function: Callable[..., Any]) -> None:
        for place in self._places:
            setattr(place, self._attribute, function)


def ablate(folders: list[Path], half: str, every: int) -> None:
    """The answers that are lost, and won, without each mechanism at two budgets.

    A question to which a mechanism has nothing to say is not asked again without it.
    """
    mechanisms = {name: Mechanism(name) for name in MECHANISMS}
    tallies = {name: [0] * 5 for name in MECHANISMS}
    asked = 0
    for folder in folders:
        for doc, questions in groupby(sorted(read_questions(folder, half)[::every], key=by_doc), by_doc):
            data = (folder / doc).read_bytes()
            index, others = build(data), {name: build(data) for name in READ_ONCE}
            for question in questions:
                asked += 1
                for name, mechanism in mechanisms.items():
                    mechanism.watch(is_kept=name in READ_ONCE)
                right = ask(index, question)
                for mechanism in mechanisms.values():
                    mechanism.restore()
                for name, mechanism in mechanisms.items():
                    if mechanism.has_said_something:
                        mechanism.switch_off()
                        without = ask(others.get(name, index), question)
                        mechanism.restore()
                        lost_and_won = [[one and not other, other and not one] for one, other in zip(right, without, strict=True)]
                        counted = [True, *(each for pair in lost_and_won for each in pair)]
                        tallies[name] = [old + new for old, new in zip(tallies[name], counted, strict=True)]
            for name in READ_ONCE:
                mechanisms[name].has_said_something = False
    print(f"{asked} questions\n\n| without | concerned | at 500: lost | won | at 2000: lost | won |\n|---|---|---|---|---|---|")
    for name, tally in tallies.items():
        print(f"| {name} | " + " | ".join(map(str, tally)) + " |")


def ask(index: Index, question: Question) -> list[bool]:
    signals = [getattr(sys.modules[signal.__module__], signal.__name__) for signal in SIGNALS]  # with current switches
    selections = [select(index, question["question"], max_tokens=budget, signals=signals) for budget in (500, 2000)]
    return [holds(selection, question) for selection in selections]


def read_questions(folder: Path, half: str) -> list[Question]:
    rows = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    return [row for row in rows if row.get("half", half) == half]


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
    parser.add_argument("folders", metavar="SET", nargs="*", type=Path, default=[Path(os.environ.get("OVERSPILL_EVALSET", "."))])
    parser.add_argument("--ablate", action="store_true", help="switch each mechanism off in turn")
    parser.add_argument("--every", type=int, default=1, help="of --ablate: ask only every n-th question")
    parser.add_argument("--half", choices=["seen", "unseen"], default="seen", help="of a set that has halves (default: seen)")
    given = parser.parse_args()
    for folder in given.folders:
        if not (folder / "questions.jsonl").is_file():
            sys.exit(f"No question set at {folder}: pass a folder with questions.jsonl, or set OVERSPILL_EVALSET.")
    if given.ablate:
        ablate(given.folders, given.half, given.every)
        return
    folder = given.folders[0]
    questions = read_questions(folder, given.half)
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
