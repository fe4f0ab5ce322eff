"""python -m benchmarks.questions build DIR | score DIR"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.questions.checks import drop_bad
from benchmarks.questions.halves import divide
from benchmarks.questions.kinds import BUILDERS
from benchmarks.questions.material import QuestionSet
from benchmarks.questions.picks import WITH_QUERIES, read_queries
from benchmarks.questions.question import Entry, Half, read_set, write_set
from benchmarks.questions.scoring import render, score_set
from benchmarks.questions.sets import SETS
from benchmarks.questions.sources import SourceMissing, Sources


def build(folder: Path, chosen: QuestionSet, mirror: Path | None, only: str | None) -> None:
    sources = Sources(folder / "sources", mirror)
    (folder / "sources").mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    for kind, builder in BUILDERS.items():
        if only in (None, kind):
            entries += builder(sources, chosen)
    good, bad = drop_bad(entries)
    for entry, problem in bad:
        print(f"left out {entry.question.id}: {problem}", file=sys.stderr)
    divided = divide([entry.question for entry in good], chosen.split)
    write_set(folder, good, divided)
    counts = Counter(entry.question.kind for entry in good)
    halves = Counter((entry.question.kind, divided[entry.question.id]) for entry in good)
    for kind, count in sorted(counts.items()):
        sources_of_kind = {entry.question.source for entry in good if entry.question.kind == kind}
        print(f"{kind}: {count} questions ({halves[kind, 'seen']} seen), {len(sources_of_kind)} sources")
    if short := [kind for kind, count in counts.items() if count < chosen.least]:
        sys.exit(f"Fewer than {chosen.least} questions: {', '.join(short)}.")


def score(folder: Path, half: Half | None, queries: str | None, budgets: list[int], with_engine: bool) -> None:
    if not (folder / "questions.jsonl").is_file():
        sys.exit(f"No question set in {folder}. Build one: python -m benchmarks.questions build {folder}")
    questions = read_set(folder, half)
    if queries:
        written = read_queries(queries)
        questions = [replace(each, question=written[each.id]) for each in questions if each.id in written]
        if not questions:
            sys.exit(f"None of the questions in {folder} has a query in the {queries} set.")
    print(render(score_set(folder, questions, budgets, with_engine)))


def parse_budgets(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 500,2000") from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="download the pinned sources and write documents and questions")
    building.add_argument("folder", type=Path)
    building.add_argument("--set", choices=list(SETS), default="popular", help="which sources (default: %(default)s)")
    building.add_argument("--mirror", type=Path, help="a folder with bare clones, owner+name or owner/name, tried before GitHub")
    building.add_argument("--only", choices=list(BUILDERS), help="one kind alone")
    scoring = commands.add_parser("score", help="recall of extract and of SQLite FTS5")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--half", choices=["seen", "unseen"])
    scoring.add_argument(
        "--queries",
        choices=WITH_QUERIES,
        metavar="SET",
        help="ask with what a model wrote for these questions of SET, not in their own words",
    )
    scoring.add_argument("--budgets", type=parse_budgets, default=[500, 2000])
    scoring.add_argument("--no-engine", action="store_true", help="FTS5 alone")
    given = parser.parse_args()
    try:
        if given.command == "build":
            build(given.folder, SETS[given.set], given.mirror, given.only)
        else:
            score(given.folder, given.half, given.queries, given.budgets, not given.no_engine)
    except SourceMissing as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
