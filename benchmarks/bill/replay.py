"""Prices a recorded conversation twice: as it was, and with Overspill between the tools and the model.

The second is counterfactual: the model's own words stay as recorded, each result becomes what a real session answers to it, and
where the record shows that the model needed something which that answer leaves out, it has to ask: one more request, priced in
full, whose question is what the model wrote when it made the call. If the answer to that still lacks what the model needed, a
second one reads a page of the output. With `asks_always`, the model asks about every kept output, needed or not.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.bill.conversation import Conversation, Result, Step, Usage
from benchmarks.bill.prices import Prices, Request, divide, read_prices
from overspill import Reply, Session, Settings
from overspill.store.memory import MemoryStore
from overspill.text.tokens import count

CALL_TOKENS = 60  # a call of a retrieval tool with a question, as models write it
PAGE_BYTES = 12_288
QUESTION_CHARS = 400
LONG_WORD = 12  # characters; one such word is enough, of shorter ones it takes two
_TELLING = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$./:@#-]{4,80}[A-Za-z0-9_$]|\d{3,}")
_ODD = re.compile(r"[0-9_./:@#$]|[a-z][A-Z]")
_RANDOM = re.compile(r"\b(out_)[a-z0-9]{6}|\b((?:preview|data) )\d{6}\b")
_PARTS = re.compile(r"[./:@#-]+")


@dataclass(frozen=True)
class Need:
    """The model wrote `words` in step `step`; of all it had been given, only the left-out part of a result holds them."""

    asked: int  # the step whose result it was
    step: int
    tool: str
    words: tuple[str, ...]
    steps: int  # requests it takes to get them


@dataclass(frozen=True)
class Side:
    usages: tuple[Usage, ...]

    @property
    def steps(self) -> int:
        return len(self.usages)

    def cost(self, prices: Prices) -> float:
        return sum(prices.cost(usage) for usage in self.usages)


@dataclass(frozen=True)
class Replayed:
    conversation: Conversation
    result_tokens: int
    kept: int
    needs: tuple[Need, ...]
    without: Side
    with_it: Side


@dataclass
class _Kept:
    step: int
    tool: str
    handle: str
    question: str
    missing: set[str]
    page: str


@dataclass
class _Added:
    """What a step adds to the prompt: what the model wrote, and what it was given."""

    written: int
    given: int
    extra: list[tuple[int, int]] = field(default_factory=list)  # of each request before this step: tokens written, tokens given


async def replay(
    conversation: Conversation,
    prices: Prices,
    settings: Settings,
    offered_tokens: int,
    with_intent: bool,
    asks_always: bool = False,
) -> Replayed:
    beginning = measure_beginning(conversation)
    plainly, changed, needs, kept_count, result_tokens = list[_Added](), list[_Added](), list[Need](), 0, 0
    known = telling(conversation.beginning)
    waiting: list[_Kept] = []
    async with Session(settings, store=MemoryStore()) as session:
        for at, step in enumerate(conversation.steps):
            here = _Added(count(step.written).tokens, 0)
            waiting, met = await meet_needs(session, waiting, at, step, known, asks_always)
            needs += [need for need, _ in met]
            here.extra = [tokens for _, extra in met for tokens in extra]
            known |= telling(step.written) | telling(step.said)
            plain = given = count(step.said).tokens
            for result in step.results:
                size = count(result.text).tokens
                reply = await answer(session, result, step.written if with_intent else "")
                plain, result_tokens = plain + size, result_tokens + size
                shown = reply.text if reply.kept else result.text
                given += measure(shown) if reply.kept else size
                known |= telling(shown)
                if reply.kept:
                    kept_count += 1
                    missing = telling(result.text) - known
                    waiting.append(
                        _Kept(
                            at, result.tool, reply.kept.handle, step.written[:QUESTION_CHARS], missing, result.text[:PAGE_BYTES]
                        )
                    )
            for kept in waiting:
                kept.missing -= known
            plainly.append(_Added(here.written, plain))
            changed.append(_Added(here.written, given, here.extra))
    times = [step.at for step in conversation.steps]
    return Replayed(
        conversation,
        result_tokens,
        kept_count,
        tuple(needs),
        Side(tuple(divide(requests(beginning, plainly, times), prices))),
        Side(tuple(divide(requests(beginning + offered_tokens, changed, times), prices))),
    )


def offered(settings: Settings) -> int:
    """Tokens of the retrieval tools that every request carries; `run_program` is for those who install its extra."""
    tools = [tool for tool in Session(settings).tools("openai") if tool["function"]["name"] != "run_program"]
    return count(json.dumps(tools, separators=(",", ":"))).tokens


async def replay_all(
    conversations: list[Conversation], prices: str, settings: Settings, with_intent: bool, asks_always: bool
) -> list[Replayed]:
    table, tools = read_prices(prices), offered(settings)
    replayed = list[Replayed]()
    for number, conversation in enumerate(conversations, 1):
        if sys.stderr.isatty() and number % 20 == 0:
            print(f"\r{number} of {len(conversations)}", end="", file=sys.stderr)
        replayed.append(await replay(conversation, table, settings, tools, with_intent, asks_always))
    return replayed


def measure_beginning(conversation: Conversation) -> int:
    """As billed, where the record says so: hosts do not record their own prompt and tools."""
    first = conversation.steps[0].usage
    return first.input if first else count(conversation.beginning).tokens


async def answer(session: Session, result: Result, intent: str) -> Reply:
    async def run(**_: object) -> str:
        return result.text

    return await session.call(result.tool or "tool", result.args, run, intent=intent[:QUESTION_CHARS])


async def meet_needs(
    session: Session, waiting: list[_Kept], at: int, step: Step, known: set[str], asks_always: bool
) -> tuple[list[_Kept], list[tuple[Need, list[tuple[int, int]]]]]:
    """Ask for everything the model writes in this step without having been given it. Afterwards, it counts as known."""
    words = telling(step.written) - known
    still, met = list[_Kept](), list[tuple[Need, list[tuple[int, int]]]]()
    for kept in waiting:
        wanted = words & kept.missing
        if len(wanted) < 2 and not any(len(word) >= LONG_WORD for word in wanted) and not asks_always:
            still.append(kept)
            continue
        asked = await session.invoke("tool_output", {"handle": kept.handle, "extract": kept.question or "what matters"})
        known |= telling(asked.text)
        extra = [(CALL_TOKENS, measure(asked.text))]
        if not wanted <= telling(asked.text):
            extra.append((CALL_TOKENS, count(kept.page).tokens))
        known |= wanted
        met.append((Need(kept.step, at, kept.tool, tuple(sorted(wanted)), len(extra)), extra))
    return still, met


def requests(beginning: int, added: Iterable[_Added], times: list[float | None]) -> list[Request]:
    made, size = list[Request](), beginning
    for step, at in zip(added, times, strict=True):
        for written, given in step.extra:
            made.append(Request(size, written, at))
            size += written + given
        made.append(Request(size, step.written, at))
        size += step.written + step.given
    return made


def measure(answer: str) -> int:
    """The tokens of one of our answers, as if its random names and marks were always the same."""
    return count(_RANDOM.sub(r"\1\g<2>3f7k9q", answer)).tokens


def telling(text: str) -> set[str]:
    """Names, numbers, paths and addresses: what a model can hardly write without having read it. A path's parts count too, since
    a model that knows `io/Parser.java` can write `Parser`, and so does `_parser`."""
    found = {word for word in _TELLING.findall(text) if _ODD.search(word)}
    parts = {part for word in found for part in _PARTS.split(word) if len(part) > 2}
    return {word.strip("_").lower() for word in found | parts if len(word) > 2}
