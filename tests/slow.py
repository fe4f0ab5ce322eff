"""Parameters that only `scripts/test --all` tries, where a few of them show a quick run whether it works."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest


def slow(*parameters: object) -> Iterator[Any]:
    return (pytest.param(each, marks=pytest.mark.slow) for each in parameters)


def every_fourth(parameters: Iterable[object]) -> list[Any]:
    """All of them. A quick run tries every fourth."""
    return [pytest.param(each, marks=[pytest.mark.slow] if number % 4 else []) for number, each in enumerate(parameters)]
