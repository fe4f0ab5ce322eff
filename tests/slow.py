"""Parameters that only `scripts/test --all` tries, where a few show a quick run whether it works. They cover nothing new."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

_MARKS = (pytest.mark.slow, pytest.mark.no_cover)


def slow(*parameters: object) -> Iterator[Any]:
    return (pytest.param(each, marks=_MARKS) for each in parameters)


def every_fourth(parameters: Iterable[object]) -> list[Any]:
    """All of them. A quick run tries every fourth."""
    return [pytest.param(each, marks=_MARKS if number % 4 else []) for number, each in enumerate(parameters)]
