"""What requests cost: a dated table of prices, and a model of the prompt cache.

The cache holds the prefix of the last request for `cache_seconds` from its last use. Everything after that prefix is written to
the cache, for the next request to read. The model's own words are part of the next request's new text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bill.conversation import Usage

TABLE = Path(__file__).with_name("prices.json")
MILLION = 1_000_000


@dataclass(frozen=True)
class Prices:
    fresh: float
    cache_read: float
    cache_write: float
    output: float
    cache_seconds: float
    least_cached: int

    def cost(self, usage: Usage) -> float:
        """In dollars."""
        return (
            usage.fresh * self.fresh
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
            + usage.output * self.output
        ) / MILLION


def read_prices(model: str) -> Prices:
    return Prices(**json.loads(TABLE.read_text())["models"][model])


def models() -> list[str]:
    return list(json.loads(TABLE.read_text())["models"])


@dataclass(frozen=True)
class Request:
    input: int  # tokens
    output: int
    at: float | None = None
    shared: int | None = None  # how much of the last request's input this one begins with; None: all of it


def divide(requests: Iterable[Request], prices: Prices) -> list[Usage]:
    """How the input of each request is billed."""
    divided: list[Usage] = []
    last: Request | None = None
    for request in requests:
        cached = 0
        if last and is_alive(last, request, prices.cache_seconds):
            cached = min(last.input if request.shared is None else request.shared, request.input)
        if cached < prices.least_cached:
            cached = 0
        if request.input < prices.least_cached or not prices.cache_seconds:
            divided.append(Usage(request.input, 0, 0, request.output))
        else:
            divided.append(Usage(0, cached, request.input - cached, request.output))
        last = request
    return divided


def is_alive(last: Request, request: Request, seconds: float) -> bool:
    """Where the times are not recorded, requests follow each other in time."""
    return bool(seconds) and (last.at is None or request.at is None or request.at - last.at <= seconds)
