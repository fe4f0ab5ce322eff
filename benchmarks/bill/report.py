"""The table of a replay: by how many tokens of results a conversation had, and as a distribution."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.bill.prices import Prices
from benchmarks.bill.replay import Replayed

BANDS = ((0, 5_000), (5_000, 20_000), (20_000, 50_000), (50_000, 100_000), (100_000, None))
"""Tokens of results in a conversation."""


def render(replays: Sequence[Replayed], prices: Prices) -> str:
    lines = [
        "| tokens of results | conversations | kept | asked again | bill, sum | bill: p10 | median | p90 | steps |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for low, high in BANDS:
        chosen = [each for each in replays if low <= each.result_tokens < (high or float("inf"))]
        if chosen:
            name = f"{low:,} to {high:,}" if high else f"over {low:,}"
            lines.append(render_row(name, chosen, prices))
    lines.append(render_row("all", replays, prices))
    return "\n".join(lines)


def render_row(name: str, chosen: Sequence[Replayed], prices: Prices) -> str:
    without, with_it = (sum(side.cost(prices) for side in sides) for sides in zip(*map(sides_of, chosen), strict=True))
    changes = sorted(each.with_it.cost(prices) / each.without.cost(prices) - 1 for each in chosen)
    deciles = statistics.quantiles(changes, n=10, method="inclusive") if len(changes) > 1 else changes * 9
    steps = sum(each.with_it.steps for each in chosen) / sum(each.without.steps for each in chosen) - 1
    kept, needs = sum(each.kept for each in chosen), sum(need.steps for each in chosen for need in each.needs)
    return (
        f"| {name} | {len(chosen)} | {kept} | {needs} | {with_it / without - 1:+.1%} "
        f"| {deciles[0]:+.1%} | {statistics.median(changes):+.1%} | {deciles[8]:+.1%} | {steps:+.2%} |"
    )


def sides_of(replayed: Replayed):
    return replayed.without, replayed.with_it


def steps_for_kept(replays: Sequence[Replayed]) -> list[int]:
    """The extra requests of each kept output, sorted."""
    extra = [need.steps for each in replays for need in each.needs]
    return sorted(extra + [0] * (sum(each.kept for each in replays) - len(extra)))
