"""What an adapter adds to a small tool call, beside the bare framework. Runs in the framework's own environment:

    $(scripts/framework --python pydantic_ai) benchmarks/integrations.py pydantic_ai [--calls 300] [--rounds 7]

One run of an agent makes many small tool calls, with a scripted model. Bare and wrapped runs alternate; the best of all rounds
counts, in processor time. The second figure is what enters the context until the right answer: a 500 KB log in whole, or what
Overspill shows of it with one question.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from overspill.text import tokens
from tests.integrations.conftest import load_driver
from tests.integrations.driving import Call, Driver, Request, Scripted
from tests.integrations.suite import LOG, NEEDLE, extract, read_log

CALLS_A_TURN = 50


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def count_to(calls: int) -> Callable[[Request], Any]:
    """Frameworks limit the turns of a run, so each turn makes many calls."""
    made = 0

    def script(request: Request) -> Any:
        nonlocal made
        if made >= calls:
            return "done"
        made += CALLS_A_TURN
        return [Call("add", {"a": number, "b": 1}, f"c{made}-{number}") for number in range(CALLS_A_TURN)]

    return script


def measure(driver: Driver, calls: int, *, bare: bool) -> float:
    """Seconds of processor time for each call."""
    agent = driver.agent([add], count_to(calls), **({"bare": True} if bare else {}))
    started = time.process_time()
    assert asyncio.run(agent.run("Add.")) == "done"
    return (time.process_time() - started) / calls


def measure_context(driver: Driver) -> int:
    """The tokens of all tool results until the answer was there."""
    script = Scripted(
        [Call("read_log")], lambda request: extract(request, "the order that was refused"), lambda request: request.results["c2"]
    )
    assert NEEDLE in asyncio.run(driver.agent([read_log], script).run("Read the log and find the refused order."))
    return sum(tokens.count(text, None).tokens for text in script.last.results.values())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    driver = load_driver(options.framework)
    rounds = [
        (measure(driver, options.calls, bare=True), measure(driver, options.calls, bare=False)) for _ in range(options.rounds)
    ]
    bare, wrapped = (min(column) for column in zip(*rounds, strict=True))
    print(f"{options.framework}: {bare * 1e3:.2f} ms bare, {wrapped * 1e3:.2f} ms with Overspill a call: ", end="")
    print(f"{wrapped / bare:.2f} x, {(wrapped - bare) * 1e3:.2f} ms more")
    whole, shown = tokens.count(LOG, None).tokens, measure_context(driver)
    print(f"{options.framework}: {whole:,} tokens in whole, {shown:,} with Overspill: {whole / shown:.0f} x fewer")


if __name__ == "__main__":
    main()
