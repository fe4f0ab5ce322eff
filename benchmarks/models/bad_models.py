"""What bad models do to the replies of tool_output, and how many tokens each mode sends. Does not use a real model.

    python benchmarks/models/bad_models.py --evalset DIR [--mode focused] [--budget 1000]

The first table has the share of an evaluation set's questions whose reply holds the answer: with the engine alone, and with a
model that writes garbage, finds nothing, lies with made-up quotes, or lies with numbers of lines. The second has the tokens that
`focused` and `full-chunked` send in all for documents of more than 30,000 tokens.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parent))

from live_recall import Question, scorer

from overspill.models.protocol import Request
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
from overspill.testing import ScriptedModel
from overspill.types import ToolCall

MODELS: dict[str, str | None] = {
    "engine alone": None,
    "garbage": "lorem ipsum dolor sit amet consectetur " * 60,
    "nothing found": "NO RELEVANT DATA FOUND",
    "made-up quotes": "It was Zebra-4711 at 99:99.\nQUOTES:\n> Zebra-4711 failed at 99:99\n> this line is nowhere",
    "numbers that prove nothing": "It was Zebra-4711 at 99:99.\nQUOTES: 1, 2, 3, 4, 5",
    "a copy of the first line": "",  # filled in for each document
}
LONG_DOCUMENT_TOKENS = 30_000
TARGET = "test/qwen2.5-1.5b"


class Sent(Struct, frozen=True):
    id: str
    document: int
    tokens: int


def saying(words: str) -> Callable[[Request], str | ToolCall]:
    return lambda request: ToolCall("1", "Read", {"limit": 5}) if request.tool_choice == "required" else words


async def reply(folder: Path, question: Question, words: str | None, mode: str, budget: int) -> tuple[str, Sent]:
    text = (folder / question.doc).read_bytes().decode()
    if words == "":
        words = next(line for line in text.splitlines() if line.strip())[:200]
    models = {} if words is None else {TARGET: ScriptedModel(saying(words), name=TARGET, context_window=32_768)}
    settings = Settings(answerMaxBytes=budget * 4, toolResponseMaxBytes=1000, toolOutput={"maxExtractionChunks": 100_000})
    async with Session(settings, store=MemoryStore(), models=models) as session:
        kept = await session.keep(text, question.tool_name)
        answer = await session.invoke("tool_output", {"handle": kept.handle, "extract": question.question, "mode": mode})
        steps = [step for op in session.op_tree().children if op.kind == "session" for step in op.children]
        sent = sum(step.attributes["tokensInEstimated"] for step in steps if step.kind == "model")
        return answer.text, Sent(question.id, kept.size.tokens, sent)


async def measure_recall(folder: Path, questions: Sequence[Question], mode: str, budget: int) -> None:
    is_right = scorer(folder)
    print(f"| model, mode {mode}, {budget} tokens | recalled | share |\n|---|---:|---:|")
    for name, words in MODELS.items():
        right = 0
        for question in questions:
            text, _ = await reply(folder, question, words, mode, budget)
            right += is_right(text, question)
        print(f"| {name} | {right} of {len(questions)} | {right / len(questions):.1%} |", flush=True)


async def measure_tokens(folder: Path, questions: Sequence[Question]) -> None:
    sums: dict[str, int] = {}
    counts: dict[str, int] = {}
    for mode in ("focused", "full-chunked"):
        for question in questions:
            _, sent = await reply(folder, question, "NO RELEVANT DATA FOUND", mode, 1000)
            if sent.document > LONG_DOCUMENT_TOKENS:
                sums[mode] = sums.get(mode, 0) + sent.tokens
                counts[mode] = counts.get(mode, 0) + 1
    print("| mode | questions | tokens sent | per question |\n|---|---:|---:|---:|")
    for mode, total in sums.items():
        print(f"| {mode} | {counts[mode]} | {total:,} | {total // counts[mode]:,} |")
    print(f"full-chunked / focused: {sums['full-chunked'] / sums['focused']:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evalset", type=Path, required=True, help="folder with questions.jsonl, docs.jsonl and score.py")
    parser.add_argument("--mode", default="focused", help="which mode the models are asked in")
    parser.add_argument("--budget", type=int, default=1000, help="tokens of an answer at most, at four characters each")
    parser.add_argument("--only", choices=("recall", "tokens"), help="one of the two tables")
    given = parser.parse_args()
    with (given.evalset / "questions.jsonl").open("rb") as file:
        questions = sorted((msgspec.json.decode(line, type=Question) for line in file), key=lambda each: each.doc)
    if given.only != "tokens":
        anyio.run(measure_recall, given.evalset, questions, given.mode, given.budget)
    if given.only != "recall":
        anyio.run(measure_tokens, given.evalset, questions)


if __name__ == "__main__":
    main()
