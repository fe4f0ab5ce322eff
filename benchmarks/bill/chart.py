"""Draws the bill of recorded conversations by the size of their results.

python -m benchmarks.bill.chart --material DIR > docs/bill.svg
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from benchmarks.bill.conversation import Conversation
from benchmarks.bill.prices import Prices, read_prices
from benchmarks.bill.replay import Replayed, replay_all
from benchmarks.bill.report import BANDS
from overspill import Settings

PRICES = "claude-sonnet-4.5"
LEFT, ZERO, SCALE, TOP, ROW = 28, 600, 5.2, 92, 44
STYLE = """
    .ground { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
    .dearer { fill: #cf222e } .cheaper { fill: #1a7f37 } .axis { stroke: #59636e }
    @media (prefers-color-scheme: dark) { .ground { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9198a1 }
      .dearer { fill: #f85149 } .cheaper { fill: #3fb950 } .axis { stroke: #9198a1 } }"""


def draw(low: Sequence[Replayed], high: Sequence[Replayed], prices: Prices) -> str:
    """A bar for each band: the bill if the model asks for what it needed; a line to where it is if it asks about every output."""
    rows = list[str]()
    for number, (start, end) in enumerate(BANDS):
        chosen = [at for at, each in enumerate(low) if start <= each.result_tokens < (end or float("inf"))]
        change, worst = (measure([side[at] for at in chosen], prices) for side in (low, high))
        name = (
            f"{start // 1000},000 to {end // 1000},000"
            if end and start
            else f"under {BANDS[0][1]:,}"
            if end
            else f"over {start:,}"
        )
        rows.append(draw_row(TOP + ROW * number, name, len(chosen), change, worst))
    height = TOP + ROW * len(BANDS) + 34
    font = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', sans-serif"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" role="img" \
aria-labelledby="title desc" font-family="{font}">
  <title id="title">What Overspill does to the bill of recorded conversations</title>
  <desc id="desc">{describe(low, high, prices)}</desc>
  <style>{STYLE}
  </style>
  <rect class="ground" width="760" height="{height}" rx="8"/>
  <text class="text" x="{LEFT}" y="38" font-size="16" font-weight="600">\
The bill of {len(low)} recorded agent conversations, replayed with Overspill</text>
  <text class="quiet" x="{LEFT}" y="62" font-size="13">\
by tokens of tool results in the conversation; prompt cache, extra steps and our tools included</text>
  <line class="axis" x1="{ZERO}" x2="{ZERO}" y1="{TOP - 12}" y2="{height - 42}"/>
{"".join(rows)}  <text class="quiet" x="{LEFT}" y="{height - 14}" font-size="12">\
Thin line: if the model asked about every kept output once, needed or not. The half that nothing was tuned on.</text>
</svg>"""


def measure(chosen: Sequence[Replayed], prices: Prices) -> float:
    return sum(each.with_it.cost(prices) for each in chosen) / sum(each.without.cost(prices) for each in chosen) - 1


def draw_row(y: int, name: str, count: int, change: float, worst: float) -> str:
    left = min(ZERO, ZERO + change * 100 * SCALE)
    width = abs(change) * 100 * SCALE
    kind, at = ("cheaper", left - 8) if change < 0 else ("dearer", ZERO + width + 8)
    anchor = "end" if change < 0 else "start"
    inside = change < -0.5  # the label would meet the name of the band
    label = f'x="{left + 8 if inside else at:.0f}" text-anchor="{"start" if inside else anchor}"'
    colour = 'fill="#ffffff"' if inside else 'class="text"'
    end = ZERO + worst * 100 * SCALE
    return f"""  <text class="quiet" x="{LEFT}" y="{y + 4}" font-size="13">{name}</text>
  <text class="quiet" x="{LEFT}" y="{y + 19}" font-size="11">{count} conversations</text>
  <rect class="{kind}" x="{left:.1f}" y="{y - 6}" width="{max(width, 1):.1f}" height="22" rx="2"/>
  <line class="axis" x1="{min(ZERO + change * 100 * SCALE, end):.1f}" x2="{max(ZERO + change * 100 * SCALE, end):.1f}" \
y1="{y + 19}" y2="{y + 19}"/>
  <text {label} y="{y + 10}" font-size="14" font-weight="600" {colour}>{change:+.1%}</text>
"""


def describe(low: Sequence[Replayed], high: Sequence[Replayed], prices: Prices) -> str:
    said = list[str]()
    for start, end in BANDS:
        chosen = [at for at, each in enumerate(low) if start <= each.result_tokens < (end or float("inf"))]
        change, worst = (measure([side[at] for at in chosen], prices) for side in (low, high))
        said.append(f"{start:,} to {end:,} tokens" if end else f"over {start:,} tokens")
        said[-1] += f": {change:+.1%}, at worst {worst:+.1%}"
    return "; ".join(said) + "."


def draw_chart(conversations: list[Conversation]) -> str:
    low, high = (asyncio.run(replay_all(conversations, PRICES, Settings(), False, always)) for always in (False, True))
    return draw(low, high, read_prices(PRICES))
