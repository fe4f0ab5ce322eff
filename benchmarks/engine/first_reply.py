"""How often the first reply to a large output already holds the answer, and what looking for it costs.

    python benchmarks/engine/first_reply.py SET          or with the path in OVERSPILL_EVALSET
    python benchmarks/engine/first_reply.py --cost       how much longer a reply with an intent takes, from 0.1 to 100 MB

A set is a folder with questions.jsonl, as for engine_recall.py. Each question's document is the output of a tool call through a
real session. The replies compared: without an intent; with the question as intent; with its five rarest words (those in fewest
questions of the set); beginning and end in as many characters as previews used to have; and a plain cut at 10,000 tokens. Tokens
are characters / 4 of the whole reply. An answer counts as engine_recall.py counts it.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from recall import Question, mean, normal

from overspill import Session, Settings
from overspill.store.memory import MemoryStore
from overspill.truncate import truncate

PREVIEW_CHARS = 2_000
CUT_CHARS = 40_000
RARE_WORDS = 5
MEGABYTE = 1_000_000
ROUNDS = {0.1: 20, 1: 20, 10: 10, 100: 5}
"""By megabytes."""
INTENT = "requests that timed out"
MARKS = "\"'“”‘’`.,;:!?()[]"

Shown = Callable[[Question, str], Awaitable[str]]


def holds(text: str, question: Question) -> bool:
    shown = normal(text)
    return any(normal(answer) in shown for answer in question["answers"]) and all(
        normal(part) in shown for part in question["all_of"]
    )


def split_words(text: str) -> list[str]:
    return [word for part in text.split() if (word := part.strip(MARKS))]


def keep_rarest(question: str, spread: Counter[str]) -> str:
    words = list(dict.fromkeys(split_words(question)))
    rare = set(sorted(words, key=lambda word: spread[word.lower()])[:RARE_WORDS])
    return " ".join(word for word in words if word in rare)


async def measure_recall(folder: Path) -> None:
    questions: list[Question] = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    spread = Counter(word for each in questions for word in set(split_words(each["question"].lower())))
    negatives = folder / "negatives.jsonl"
    absent = [json.loads(line) for line in negatives.open(encoding="utf-8")] if negatives.is_file() else []
    # However busy the machine is: what is in time is measured with --cost.
    async with Session(Settings(intentWithinSecs=600, repeats="full"), store=MemoryStore()) as session:

        async def reply(question: Question, text: str, intent: str) -> str:
            return (await session.call(question["tool_name"], {}, lambda: text, intent=intent)).text

        async def cut(text: str, chars: int) -> str:
            return truncate(text, chars, "head_tail").text

        ways: dict[str, Shown] = {
            "no intent": lambda question, text: reply(question, text, ""),
            "the question": lambda question, text: reply(question, text, question["question"]),
            "its five rarest words": lambda question, text: reply(question, text, keep_rarest(question["question"], spread)),
            "beginning and end": lambda question, text: cut(text, PREVIEW_CHARS),
            "plain cut": lambda question, text: cut(text, CUT_CHARS),
        }
        print("| first reply | mean over sources | pooled | tokens |\n|---|---|---|---|")
        for name, show in ways.items():
            await score(name, folder, questions, show)
        claims = [await reply(each, read(folder, each), each["question"]) for each in absent]
    if absent:
        sure = mean("Passages found" in text and "Low confidence" not in text for text in claims)
        unsure = mean("Low confidence" in text for text in claims)
        print(f"\nOf {len(absent)} questions without an answer: {sure:.1f} % passages, {unsure:.1f} % with low confidence.")


def read(folder: Path, question: Question) -> str:
    return (folder / question["doc"]).read_bytes().decode("utf-8", "replace")


async def score(name: str, folder: Path, questions: Iterable[Question], show: Shown) -> None:
    found: dict[str, list[bool]] = defaultdict(list)
    lengths: list[int] = []
    for question in questions:
        text = await show(question, read(folder, question))
        found[question["source"]].append(holds(text, question))
        lengths.append(len(text))
    by_source = statistics.fmean(mean(each) for each in found.values())
    pooled = mean(each for source in found.values() for each in source)
    print(f"| {name} | {by_source:.1f} % | {pooled:.1f} % | {statistics.fmean(lengths) / 4:.0f} |", flush=True)


def make_log(megabytes: float) -> str:
    """Each line differs, so that nothing is found sooner than in a real log."""
    lines = [
        f"2026-11-16 12:00:00 INFO request {n * 7919 % 1_000_003} served in {n % 977} ms by worker-{n % 31}"
        for n in range(13_000)
    ]
    block = "\n".join(lines)
    size = round(megabytes * MEGABYTE)
    text = "\n".join([block] * (size // len(block) + 1))[:size]
    middle = len(text) // 2
    return f"{text[:middle]}\n2026-11-16 12:00:01 ERROR request 42 timed out upstream\n{text[middle:]}"


async def measure_cost() -> None:
    print("| output | without intent, p95 | with intent, p95 | more | answered in time | processor time of a search, median |")
    print("|---|---|---|---|---|---|")
    async with Session(Settings()) as session, Session(Settings(intentWithinSecs=600)) as patient:
        await patient.call("warm", {}, lambda: make_log(1), intent=INTENT)
        for megabytes, rounds in ROUNDS.items():
            text = make_log(megabytes)
            plain: list[float] = []
            asked: list[float] = []
            worked: list[float] = []
            answered = 0
            # Each output differs, so that no index is there yet. Searches that are late would count as the next one's.
            for number in range(rounds):
                output = f"{number}\n{text}"
                seconds, before, _ = await take_time(patient, output, "")
                worked.append((await take_time(patient, output, INTENT))[1] - before)
                plain.append(seconds)
            for number in range(rounds):
                seconds, _, shown = await take_time(session, f"{number}\n{text}", INTENT)
                asked.append(seconds)
                answered += "Passages found" in shown
            times = f"{p95(plain):.2f} s | {p95(asked):.2f} s | {p95(asked) - p95(plain):+.2f} s"
            print(f"| {megabytes} MB | {times} | {answered} of {rounds} | {statistics.median(worked):.2f} s |", flush=True)


async def take_time(session: Session, output: str, intent: str) -> tuple[float, float, str]:
    """Seconds, seconds of processor time, and the reply."""
    start, worked = time.perf_counter(), time.process_time()
    reply = await session.call("read_logs", {}, lambda: output, intent=intent)
    return time.perf_counter() - start, time.process_time() - worked, reply.text


def p95(values: list[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def main() -> None:
    if "--cost" in sys.argv:
        asyncio.run(measure_cost())
        return
    named = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("OVERSPILL_EVALSET", "")
    if not named or not (Path(named) / "questions.jsonl").is_file():
        sys.exit(
            f"No question set at {named or '(no path given)'}: pass a folder with questions.jsonl, or set OVERSPILL_EVALSET."
        )
    asyncio.run(measure_recall(Path(named)))


if __name__ == "__main__":
    main()
