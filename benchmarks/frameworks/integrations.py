"""What an adapter adds to a small tool call, beside the bare framework. Runs in the framework's own environment:

    $(scripts/framework --python pydantic_ai) benchmarks/frameworks/integrations.py pydantic_ai [--calls 300] [--rounds 7]

Runs of an agent make few and many small tool calls, with a scripted model. The difference is what a call costs, the rest is what
a run does. Runs of the bare framework, with hooks that do nothing (see `idle_hooks`) and with Overspill alternate; the best of
all rounds counts, in processor time. "Overspill itself" is the same call without the framework.

With --context: what enters the context until the right answer, in tokens, with the framework's own mechanism for large results,
with Overspill, and with nothing. `pydantic_ai` runs in the environment `pydantic_ai_harness` then.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.frameworks.mechanisms.context import TASKS, make_bare, make_ours, measure_spent
from benchmarks.frameworks.mechanisms.old_results import measure_sent
from overspill.integrations.options import Options
from overspill.integrations.sessions import Sessions
from overspill.settings import Settings
from overspill.types import Output
from tests.integrations.conftest import load_driver
from tests.integrations.driving import Call, Driver, Request

CALLS_A_TURN = 50


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def count_to(calls: int) -> Callable[[Request], Any]:
    """Frameworks limit the turns of a run, so each turn makes many calls. CrewAI stops a model that repeats one."""
    made = 0

    def script(request: Request) -> Any:
        nonlocal made
        if made >= calls:
            return "done"
        made += CALLS_A_TURN
        return [Call("add", {"a": made + number, "b": 1}, f"c{made}-{number}") for number in range(CALLS_A_TURN)]

    return script


def measure(make_agent: Callable[..., Any], calls: int) -> float:
    """Milliseconds of processor time."""
    with tempfile.TemporaryDirectory() as place:
        agent = make_agent([add], count_to(calls), place)
        gc.collect()
        started = time.process_time()
        assert asyncio.run(agent.run("Add.")) == "done"
        return (time.process_time() - started) * 1e3


async def measure_alone(rounds: int) -> float:
    """Milliseconds of processor time for a call as adapters make it."""

    async def tool(a: int, b: int) -> Output:
        return Output([{"type": "text", "text": str(a + b)}], original=(a + b,))

    best = math.inf
    run = Sessions(Options("benchmark")).begin_run()
    for _ in range(rounds * 5):
        started = time.process_time()
        for number in range(CALLS_A_TURN):
            await run.call("add", {"a": number, "b": 1}, tool, id="c", messages=[{"role": "user", "content": "Add."}])
        best = min(best, (time.process_time() - started) * 1e3 / CALLS_A_TURN)
    await run.close()
    return best


def compare_calls(framework: str, driver: Driver, calls: int, rounds: int) -> None:
    idle = import_module(f"benchmarks.frameworks.idle_hooks.{framework}")
    kinds: dict[str, Callable[..., Any]] = {
        "bare": lambda tools, script, place: driver.agent(tools, script, bare=True),
        "idle": lambda tools, script, place: idle.make_agent(tools, script),
        "ours": lambda tools, script, place: driver.agent(tools, script, settings=Settings(storeDir=place)),
    }
    few, many = CALLS_A_TURN, CALLS_A_TURN + calls
    best = {(kind, count): math.inf for count in (few, many) for kind in kinds}
    for _ in range(rounds):
        for kind, count in best:
            best[kind, count] = min(best[kind, count], measure(kinds[kind], count))
    bare, idle_hook, ours = ((best[kind, many] - best[kind, few]) / calls for kind in kinds)
    opening = best["ours", few] - best["bare", few] - few * (ours - bare)
    print(f"{framework}: {bare:.2f} ms bare, {idle_hook:.2f} ms with an idle hook, {ours:.2f} ms with Overspill a call: ", end="")
    print(f"{ours / bare:.2f} x, {ours - bare:.2f} ms more, of which the hook {idle_hook - bare:.2f} ms, and ", end="")
    print(f"{opening:.0f} ms more a run")


async def compare_contexts(framework: str, driver: Driver, place: str) -> None:
    """Each of the framework's own mechanisms beside Overspill, and beside nothing at all."""
    mechanisms = import_module(f"benchmarks.frameworks.mechanisms.{framework}")
    for task in TASKS:
        bare = await measure_spent(make_bare(driver), task)
        for mechanism in (make_bare(driver), *mechanisms.MECHANISMS, make_ours(driver, settings=Settings(storeDir=place))):
            spent = await measure_spent(mechanism, task)
            found = "found" if spent.is_answered else "NOT found"
            print(
                f"{task.name} | {mechanism.name} | {found} | {spent.entered:,} | {spent.calls} | {spent.offered - bare.offered:,}"
            )
    for mechanism in getattr(mechanisms, "OLD_RESULTS", ()):
        sent = await measure_sent(mechanism)
        found = "found" if sent.is_answered else "NOT found"
        print(f"20 pages | {mechanism.name} | {found} | {sent.largest:,} | {sent.all:,} | {sent.changes}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework")
    parser.add_argument("--context", action="store_true", help="what enters the context, in place of what a call costs")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    driver = load_driver(options.framework)
    if options.context:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(compare_contexts(options.framework, driver, place))
        return
    compare_calls(options.framework, driver, options.calls, options.rounds)
    print(f"Overspill itself: {asyncio.run(measure_alone(options.rounds)):.2f} ms a call")


if __name__ == "__main__":
    main()
