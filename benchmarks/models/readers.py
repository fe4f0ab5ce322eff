"""How often a fixed reader answers rightly from what each system puts into its context, and at how many tokens.

    python benchmarks/models/readers.py show SET --shown DIR [--questions 392]
    $(scripts/framework --python langchain) benchmarks/models/readers.py show SET --shown DIR --framework langchain
    python benchmarks/models/readers.py ask --shown DIR --base-url URL --model NAME

`show` writes what the reader gets for each question of the set's unseen half: the result cut at 10,000 tokens, passages of SQLite
FTS5, passages of `extract`, and the first reply of a session that does not know the question. With --framework it is what the
framework's own mechanism for large results gives: its reply, then what it finds for the longest word of the question, and of a
mechanism without a search, its reply alone. `ask` gives each of these to a model and reports how many answers are right: one of
the question's answers is in them. Right answers per token compare systems; the share alone compares readers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.frameworks.mechanisms import Task
from benchmarks.questions.passages import FullTextIndex
from benchmarks.questions.question import Question, is_recalled, read_set
from overspill import SyncSession, extract
from overspill.store.memory import MemoryStore
from tests.integrations.driving import Call, Request

CUT_TOKENS = 10_000
PASSAGE_TOKENS = 2_000
OUR_TOKENS = 500
CHARACTERS_A_TOKEN = 4
ANSWER_TOKENS = 200
PROMPT = "Below is what a tool returned. Answer the question with the words of the tool's result, as short as possible.\n\n"
# What one reader takes; longer texts are cut at the end, and counted as they were shown.
MAX_CHARACTERS = 12_000 * CHARACTERS_A_TOKEN


def show_ours(text: str, question: Question) -> Iterator[tuple[str, str]]:
    yield "cut at 10,000 tokens", text[: CUT_TOKENS * CHARACTERS_A_TOKEN]
    yield "FTS5, 2,000 tokens", FullTextIndex(text, "porter").search(question.question, PASSAGE_TOKENS)
    yield "extract, 500 tokens", asyncio.run(extract(text.encode(), question.question, max_tokens=OUR_TOKENS)).text
    with SyncSession(store=MemoryStore()) as session:
        yield "our first reply, question unknown", session.call(question.tool_name, {}, lambda: text).text


def show_framework(name: str, text: str, question: Question) -> Iterator[tuple[str, str]]:
    def fetch_document() -> str:  # deepagents treats tools of some names, such as read_file, differently
        """Fetch the document."""
        return text

    word = max(re.findall(r"\w+", question.question) or [question.question], key=len)
    task = Task(question.id, fetch_document, "Fetch the document.", "", word, question.question)
    for mechanism in import_module(f"benchmarks.frameworks.mechanisms.{name}").MECHANISMS:
        requests: list[Request] = []
        moves = [lambda request, task: [Call(task.tool.__name__)], *mechanism.moves[:1]]

        def script(request: Request, moves: Any = moves, requests: list[Request] = requests) -> Any:
            requests.append(request)
            try:
                return moves[len(requests) - 1](request, task) if len(requests) <= len(moves) else "done"
            except AssertionError:  # nothing was stored: the whole result is in the context
                return "done"

        asyncio.run(mechanism.agent([fetch_document], script).run(task.prompt))
        yield mechanism.name, "\n\n".join(requests[-1].results.values())


def show(given: argparse.Namespace) -> None:
    questions = read_set(given.set, "unseen")[: given.questions]
    rows: dict[str, list[str]] = defaultdict(list)
    for number, question in enumerate(questions, 1):
        text = (given.set / question.doc).read_text("utf-8")
        shown = show_framework(given.framework, text, question) if given.framework else show_ours(text, question)
        for system, context in shown:
            rows[system].append(json.dumps({"system": system, "shown": context, "question": asdict(question)}))
        print(f"\r{number} of {len(questions)}", end="", file=sys.stderr)
    given.shown.mkdir(parents=True, exist_ok=True)
    for system, lines in rows.items():
        name = re.sub(r"[^a-z0-9]+", "-", system.lower())
        (given.shown / f"{name}.jsonl").write_text("\n".join([*lines, ""]), "utf-8")


def answer(given: argparse.Namespace, row: dict[str, Any]) -> tuple[str, int, bool]:
    question = Question(**{key: tuple(value) if isinstance(value, list) else value for key, value in row["question"].items()})
    content = f"{PROMPT}{row['shown'][:MAX_CHARACTERS]}\n\nQuestion: {question.question}"
    messages = [{"role": "user", "content": content}]
    body = {"model": given.model, "messages": messages, "temperature": 0, "max_tokens": ANSWER_TOKENS}
    headers = {"Content-Type": "application/json"}
    sent = HttpRequest(f"{given.base_url}/chat/completions", json.dumps(body).encode(), headers)  # noqa: S310
    with urlopen(sent, timeout=given.timeout) as reply:  # noqa: S310
        said = json.loads(reply.read())["choices"][0]["message"]["content"] or ""
    return row["system"], len(row["shown"]) // CHARACTERS_A_TOKEN, is_recalled(question, said)


def ask(given: argparse.Namespace) -> None:
    lines = (line for file in sorted(given.shown.rglob("*.jsonl")) for line in file.read_text("utf-8").splitlines())
    with ThreadPoolExecutor(given.at_once) as pool:
        answers = list(pool.map(partial(answer, given), map(json.loads, lines)))
    by_system: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for system, size, is_right in answers:
        by_system[system].append((size, is_right))
    print("| what the reader gets | questions | right | tokens, mean | right per 1,000 tokens |\n|---|---:|---:|---:|---:|")
    for system, found in sorted(by_system.items()):
        share, size = statistics.mean(is_right for _, is_right in found), statistics.mean(size for size, _ in found)
        print(f"| {system} | {len(found)} | {share:.1%} | {size:,.0f} | {1000 * share / max(1, size):.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    showing = commands.add_parser("show", help="write what each system shows")
    showing.add_argument("set", type=Path, help="a folder that `python -m benchmarks.questions build` has filled")
    showing.add_argument("--framework", help="the framework whose own mechanism is measured, in whose environment this runs")
    showing.add_argument("--questions", type=int, default=392)
    asking = commands.add_parser("ask", help="ask a model, and print one table")
    asking.add_argument("--base-url", required=True)
    asking.add_argument("--model", required=True)
    asking.add_argument("--at-once", type=int, default=32)
    asking.add_argument("--timeout", type=float, default=600)
    for command, does in ((showing, show), (asking, ask)):
        command.add_argument("--shown", type=Path, required=True, help="a folder for what is shown, outside the project")
        command.set_defaults(does=does)
    given = parser.parse_args()
    given.does(given)


if __name__ == "__main__":
    main()
