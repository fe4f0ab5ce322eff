"""What Overspill does to the bill of recorded conversations.

    python -m benchmarks.bill replay [--material DIR] [--half unseen] [--prices claude-sonnet-4.5] [--set KEY=VALUE …]
    python -m benchmarks.bill cache --material DIR       checks the model of the prompt cache against recorded usage
    python -m benchmarks.bill chart --material DIR       an SVG of the unseen half
    python -m benchmarks.bill cases --material DIR       prints what was found to be needed again, to check by hand

DIR has clones of the repositories that material.py names: owner+name, bare or not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from pathlib import Path

from benchmarks.bill.chart import draw_chart
from benchmarks.bill.conversation import Conversation
from benchmarks.bill.material import read_example, read_material
from benchmarks.bill.prices import Request, divide, models, read_prices
from benchmarks.bill.replay import Replayed, offered, replay_all
from benchmarks.bill.report import render, steps_for_kept
from benchmarks.questions.sources import SourceMissing
from overspill import Settings


def show_cache(conversations: list[Conversation]) -> None:
    """How far the model of the cache is from what was billed, where the record says what was read from a cache."""
    prices = read_prices("claude-sonnet-4.5")
    billed = predicted = off = steps = 0
    for conversation in conversations:
        usages = [step.usage for step in conversation.steps]
        if all(usages) and any(usage.cache_read for usage in usages if usage):
            made = [
                Request(usage.input, usage.output, step.at)
                for step, usage in zip(conversation.steps, usages, strict=True)
                if usage
            ]
            for usage, guess in zip(usages[1:], divide(made, prices)[1:], strict=True):
                assert usage
                billed, predicted = billed + usage.cache_read, predicted + guess.cache_read
                off, steps = off + abs(usage.cache_read - guess.cache_read), steps + 1
    print(f"{steps} requests: read from the cache {billed:,} tokens, predicted {predicted:,} ({predicted / billed - 1:+.1%});")
    print(f"summed over requests, the prediction is off by {off / billed:.1%}")


def show_cases(replayed: list[Replayed], limit: int) -> None:
    for each in replayed:
        for need in each.needs:
            if (limit := limit - 1) >= 0:
                step = each.conversation.steps[need.step]
                print(f"\n== {each.conversation.id}: result of step {need.asked} ({need.tool}), needed in step {need.step}")
                print(f"words: {', '.join(need.words)}\nthe model then wrote: {step.written[:600]}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bill", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=["replay", "cache", "chart", "cases"])
    parser.add_argument("--material", type=Path, help="without it, a small conversation of our own is replayed")
    parser.add_argument("--half", choices=["seen", "unseen"])
    parser.add_argument("--source", help="forge, claude-code, live-mcp or swe-agent alone")
    parser.add_argument("--prices", choices=models(), default="claude-sonnet-4.5")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of Overspill")
    parser.add_argument(
        "--intent", action="store_true", help="what the model wrote before a call counts as what it is looking for"
    )
    parser.add_argument("--ask-always", action="store_true", help="the model asks about each kept output once, needed or not")
    parser.add_argument("--limit", type=int, default=50, help="cases to print")
    given = parser.parse_args()
    try:
        conversations = read_material(given.material) if given.material else [read_example()]
    except SourceMissing as error:
        sys.exit(str(error))
    conversations = [each for each in conversations if given.half in (None, each.half) and given.source in (None, each.source)]
    if given.command == "cache":
        return show_cache(conversations)
    if given.command == "chart":
        return print(draw_chart([each for each in conversations if each.half == "unseen"]))
    settings = Settings(**{key: json.loads(value) for key, _, value in (each.partition("=") for each in given.set)})
    replayed = asyncio.run(replay_all(conversations, given.prices, settings, given.intent, given.ask_always))
    if given.command == "cases":
        return show_cases(replayed, given.limit)
    print(render(replayed, read_prices(given.prices)))
    extra = steps_for_kept(replayed)
    middle, mean = statistics.median(extra), statistics.mean(extra)
    print(f"\nextra requests for a kept output: median {middle}, mean {mean:.2f}, n = {len(extra)}")
    print(f"offered tools: {offered(settings)} tokens")
    return None


if __name__ == "__main__":
    main()
