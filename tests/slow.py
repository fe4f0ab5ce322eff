"""Parameters that only `scripts/test --all` tries, where a few of them show a quick run whether it works."""

from collections.abc import Iterator
from typing import Any

import pytest


def slow(*parameters: object) -> Iterator[Any]:
    return (pytest.param(each, marks=pytest.mark.slow) for each in parameters)
