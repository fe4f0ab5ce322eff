"""Which of our tools and modes a real model picks for a stored output, and how many more calls an answer takes.

    python benchmarks/models/picks.py --evalset DIR --base-url URL --model NAME [--tools tool_output,get_tool_output] [--forced]

Each question is a conversation: the model gets the question, the document is the result of its one tool, and the reply is what
Overspill makes of it. The model may then call the offered tools, at most --turns times. `answered`: one of the right answers was
shown by then. A call is right if its reply holds one of the answers. --tools compares a longer list with the default. --forced
makes the model call a tool in its first turn, for small models that otherwise never do. Uses the first --questions whose document
is stored.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parent))

from live_recall import Question, scorer

from overspill import Settings, SyncSession
from overspill.store.memory import MemoryStore

MIN_BYTES = 12_288  # below, a result passes


class Pick(Struct, frozen=True):
    """A call of one of our tools: which, and what became of it."""

    name: str
    refused: bool
    right: bool


class Conversation(Struct, frozen=True):
    picks: list[Pick]
    at_first: bool  # whether the first reply held an answer
    answered: bool


def ask(
    given: argparse.Namespace, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], choice: str
) -> dict[str, Any]:
    body = {"model": given.model, "messages": messages, "tools": tools, "tool_choice": choice} | {
        "temperature": 0,
        "max_tokens": 400,
    }
    headers = {"Content-Type": "application/json"}
    url = f"{given.base_url}/chat/completions"
    with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=300) as answer:  # noqa: S310
        return json.loads(answer.read())["choices"][0]["message"]


def converse(given: argparse.Namespace, holds: Callable[[str, Question], bool], question: Question) -> Conversation:
    picks = list[Pick]()
    text = (given.evalset / question.doc).read_text("utf-8")
    surface = {"surface": given.tools.split(",")} if given.tools else {}
    with SyncSession(Settings(**surface), store=MemoryStore()) as session:
        reply = session.call(question.tool_name, {}, lambda: text)
        call = {"id": "0", "type": "function", "function": {"name": question.tool_name, "arguments": "{}"}}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": question.question},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "0", "content": reply.text},
        ]
        shown = reply.text
        for turn in range(given.turns):
            choice = "required" if given.forced and not turn else "auto"
            message = ask(given, messages, session.tools("openai"), choice)
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for each in message["tool_calls"]:
                name, args = each["function"]["name"], dict[str, Any]()
                with suppress(ValueError):  # small models may write invalid JSON; the call is refused below
                    args = json.loads(each["function"]["arguments"] or "{}")
                answer = session.invoke(name, args)
                called = f"{name} {args.get('mode', '')}".strip()
                picks.append(Pick(called, answer.is_error, holds(answer.text, question)))
                shown += answer.text
                messages.append({"role": "tool", "tool_call_id": each["id"], "content": answer.text})
    return Conversation(picks, holds(reply.text, question), holds(shown, question))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--evalset", type=Path, required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tools", help="names with commas between them; without it, what is offered by default")
    parser.add_argument("--forced", action="store_true", help="demand a call in the first turn")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=32)
    given = parser.parse_args()
    lines = (given.evalset / "questions.jsonl").read_bytes().splitlines()
    questions = (msgspec.json.decode(line, type=Question) for line in lines)
    kept = [each for each in questions if (given.evalset / each.doc).stat().st_size > MIN_BYTES]
    holds = scorer(given.evalset)
    with ThreadPoolExecutor(given.at_once) as pool:
        held = list(pool.map(partial(converse, given, holds), kept[: given.questions]))
    at_first, answered = sum(each.at_first for each in held), sum(each.answered for each in held)
    print(f"{len(held)} questions; answered by the first reply {at_first}, after the calls {answered}")
    calls = [len(each.picks) for each in held]
    print(f"calls for a kept output: mean {statistics.mean(calls):.2f}, median {statistics.median(calls)}, at most {max(calls)}")
    by_name = defaultdict[str, list[Pick]](list)
    for pick in (pick for each in held for pick in each.picks):
        by_name[pick.name].append(pick)
    for name, picks in sorted(by_name.items(), key=lambda item: -len(item[1])):
        refused, right = sum(pick.refused for pick in picks), sum(pick.right for pick in picks)
        print(f"{len(picks):6} {name}: {right} right, {refused} refused")


if __name__ == "__main__":
    main()
