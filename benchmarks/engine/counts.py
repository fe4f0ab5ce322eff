"""Whether "how many" is answered: questions made from the counts that programs print, as in `58 passed`.

    python benchmarks/engine/counts.py SET

SET is a folder with questions.jsonl (doc, source), of which only the documents are used. Each kind of count in a document gives
one question, answered by its last count, which is mostly that of the summary. Each runs with and without the signal.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from overspill.lexical.index import build
from overspill.lexical.select import select
from overspill.lexical.signals import SIGNALS
from overspill.lexical.signals.count import boost_counts

BUDGETS = (150, 500)
OUTCOMES = ["passed", "failed", "passing", "failing", "skipped", "pending"]
THINGS = ["failures", "errors", "warnings", "tests", "examples", "assertions", "packages", "files", "commits"]
COUNT = re.compile(rf"(?<![\w./-])\d[\d,]* ({'|'.join((*OUTCOMES, *THINGS))})\b")
OTHERS = tuple(signal for signal in SIGNALS if signal is not boost_counts)


def find_counts(text: str) -> dict[str, str]:
    """Questions and the counts that answer them."""
    last = {found[1]: found[0] for found in COUNT.finditer(text)}
    return {f"How many tests {name}?" if name in OUTCOMES else f"How many {name} were there?": last[name] for name in last}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if folder is None or not (folder / "questions.jsonl").is_file():
        sys.exit("Pass a folder with questions.jsonl.")
    rows = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    right: dict[str, list[tuple[bool, ...]]] = defaultdict(list)
    for doc, source in sorted({row["doc"]: row["source"] for row in rows}.items()):
        content = (folder / doc).read_bytes()
        index = build(content)
        for question, answer in find_counts(content.decode("utf-8", "replace")).items():
            ways = [(signals, budget) for signals in (SIGNALS, OTHERS) for budget in BUDGETS]
            shown = [select(index, question, max_tokens=budget, signals=signals).text for signals, budget in ways]
            right[source].append(tuple(answer in text for text in shown))
    print("| source | questions | " + " | ".join(f"{way} at {b}" for way in ("with", "without") for b in BUDGETS) + " |")
    print("|---|---|" + "---|" * 2 * len(BUDGETS))
    for source, answers in right.items():
        shares = (f"{100 * sum(column) / len(answers):.1f}" for column in zip(*answers, strict=True))
        print(f"| {source} | {len(answers)} | " + " | ".join(shares) + " |")


if __name__ == "__main__":
    main()
