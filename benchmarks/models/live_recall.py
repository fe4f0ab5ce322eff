"""What share of an evaluation set's questions a real model answers through tool_output, beside the built-in engine.

    python benchmarks/models/live_recall.py --evalset DIR --results FILE.jsonl [--model TARGET [--base-url URL]]

Without --model the small model of the live tests is started. Asked are the questions whose documents have the fewest tokens, at
most two of one document. Every way has the same bound on its answer, and an answer is scored as the asking model would read it,
citations included, by the evaluation set's own rule: one of `answers` and all of `all_of` are in it.

Results are added to FILE one by one; run it again to continue. FILE holds only ids and figures, and belongs outside the project.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "live"))

from live_model import LiveModel, live_model

from overspill.retrieval.extractor import BUILTIN
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.text import tokens

QUESTIONS = 20
OF_ONE_DOCUMENT = 2
WAYS = ("focused", "full-chunked", "read-grep", "built-in engine")
OWN = ("by the model itself", "of those recalled", "with checked quotes")
FIGURES = {"seconds": "seconds", "calls": "calls", "tokens in": "tokens_in", "tokens out": "tokens_out", "tokens shown": "shown"}


class Question(Struct, frozen=True):
    id: str
    doc: str
    doc_id: str
    tool_name: str
    question: str
    answers: list[str]
    all_of: list[str] = []


class Result(Struct, frozen=True):
    id: str
    way: str
    recalled: bool
    by: str
    """Who answered in the end: the model, or what stands in for it."""
    found: bool
    quotes: int
    """Passages that were checked against the stored output."""
    seconds: float
    calls: int
    tokens_in: int
    tokens_out: int
    shown: float
    """Tokens of the answer, at four characters each."""


class Conditions(Struct, frozen=True):
    model: LiveModel
    folder: Path
    budget: int
    window: int
    output: int
    retries: int

    def settings(self, way: str) -> Settings:
        bound = {"answerMaxBytes": self.budget * 4, "toolResponseMaxBytes": 1000, "extractionRetries": self.retries}
        if way == "built-in engine":
            return Settings(**bound)
        return self.model.settings(window=self.window, output=self.output, **bound)


def chosen(folder: Path, limit: int) -> list[Question]:
    """The documents of the fewest tokens first, then by id, at most two questions of each."""
    every = [msgspec.json.decode(line, type=Question) for line in (folder / "questions.jsonl").open("rb")]
    sizes = {id: tokens.count((folder / path).read_text("utf-8")).tokens for id, path in {(q.doc_id, q.doc) for q in every}}
    taken: list[Question] = []
    of: Counter[str] = Counter()
    for question in sorted(every, key=lambda each: (sizes[each.doc_id], each.doc_id, each.id)):
        of[question.doc_id] += 1
        if of[question.doc_id] <= OF_ONE_DOCUMENT:
            taken.append(question)
    return taken[:limit]


def scorer(folder: Path) -> Callable[[str, Question], bool]:
    spec = importlib.util.spec_from_file_location("evalset_score", folder / "score.py")
    assert spec is not None
    assert spec.loader is not None
    rules: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    return lambda text, question: rules.score(rules.norm(text), msgspec.to_builtins(question))[1]


async def asked(conditions: Conditions, question: Question, way: str, scored: Callable[[str, Question], bool]) -> Result:
    settings = conditions.settings(way)
    text = (conditions.folder / question.doc).read_bytes().decode()
    args = {"extract": question.question, "mode": "auto" if way == "built-in engine" else way}
    started = time.perf_counter()
    async with Session(settings, endpoints=conditions.model.endpoints(settings)) as session:
        kept = (await session.call(question.tool_name, {}, lambda: text)).kept
        assert kept is not None
        reply = await session.invoke("tool_output", {"handle": kept.handle, **args})
        facts = next(op.attributes for op in session.op_tree().children if op.kind == "session")
        counted = session.counters
        return Result(
            id=question.id,
            way=way,
            recalled=scored(reply.text, question),
            by=facts["model"] or facts["strategy"],
            found=facts["found"],
            quotes=facts["excerpts"],
            seconds=time.perf_counter() - started,
            calls=counted.model_calls,
            tokens_in=counted.input_tokens,
            tokens_out=counted.output_tokens,
            shown=len(reply.text) / 4,
        )


async def ask_all(
    conditions: Conditions, questions: Sequence[Question], ways: Sequence[str], results: Path, seconds: float
) -> None:
    done = {(result.id, result.way) for result in recorded(results)}
    scored = scorer(conditions.folder)
    with anyio.move_on_after(seconds) as time_limit, results.open("ab") as file:
        for number, question in enumerate(questions, 1):
            for way in ways:
                if (question.id, way) not in done:
                    result = await asked(conditions, question, way, scored)
                    file.write(msgspec.json.encode(result) + b"\n")
                    file.flush()
                    found = "recalled" if result.recalled else "not recalled"
                    print(f"{number}/{len(questions)} {way}: {found} by {result.by}, {result.seconds:.0f} s", flush=True)
    if time_limit.cancelled_caught:
        print("The time is up; run it again to go on.")


def recorded(results: Path) -> list[Result]:
    if not results.exists():
        return []
    return [msgspec.json.decode(line, type=Result) for line in results.open("rb")]


def table(results: Iterable[Result], ways: Sequence[str]) -> str:
    """Only questions that were asked in all of these ways are compared."""
    by_question: dict[str, dict[str, Result]] = {}
    for result in results:
        by_question.setdefault(result.id, {})[result.way] = result
    whole = [found for found in by_question.values() if found.keys() >= set(ways)]
    columns = ("way", "questions", "recalled", "share", *OWN, *FIGURES)
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    if whole:
        lines += [_row(way, [found[way] for found in whole]) for way in ways]
    return "\n".join(lines)


def _row(way: str, results: Sequence[Result]) -> str:
    recalled = sum(result.recalled for result in results)
    own = [result for result in results if result.calls and result.by not in (BUILTIN, "truncate")]
    cells = [way, len(results), recalled, f"{recalled / len(results):.0%}"]
    cells += [len(own), sum(result.recalled for result in own), sum(result.quotes > 0 for result in own)]
    for figure in FIGURES.values():
        cells.append(f"{statistics.mean(getattr(result, figure) for result in results):,.1f}")
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evalset", type=Path, required=True, help="folder with questions.jsonl, docs.jsonl and score.py")
    parser.add_argument("--results", type=Path, required=True, help="JSONL to add to, and to go on from")
    parser.add_argument("--model", default="", help="provider/model; without it the small local model is started")
    parser.add_argument("--base-url", default="", help="an OpenAI-compatible server that has the model")
    parser.add_argument("--limit", type=int, default=QUESTIONS, help="how many questions")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this way; may be given more than once")
    parser.add_argument("--budget", type=int, default=1000, help="tokens of an answer at most, at four characters each")
    parser.add_argument("--window", type=int, default=4096, help="context window the model is asked with")
    parser.add_argument("--output", type=int, default=384, help="tokens the model writes at once at most")
    # The small local model answers the same request in the same words each time: to ask it again would cost time only.
    parser.add_argument("--retries", type=int, default=0, help="how often a request that failed is repeated")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long, whatever it has reached")
    given = parser.parse_args()
    environ = {**os.environ, "OVERSPILL_LIVE_MODEL": given.model, "OVERSPILL_LIVE_BASE_URL": given.base_url}
    ways = [way for way in WAYS if way in (given.way or WAYS)]
    questions = chosen(given.evalset, given.limit)
    with live_model(environ, print) as model:
        conditions = Conditions(model, given.evalset, given.budget, given.window, given.output, given.retries)
        anyio.run(ask_all, conditions, questions, ways, given.results, given.minutes * 60)
    ids = {question.id for question in questions}
    print(table((result for result in recorded(given.results) if result.id in ids), ways))


if __name__ == "__main__":
    main()
