"""A signal takes a function and its place in one list, and can be left out."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

from overspill.lexical import signals
from overspill.lexical.index import build
from overspill.lexical.rows.signal import boost_rows
from overspill.lexical.select import select
from overspill.lexical.signals import SIGNALS


@pytest.mark.parametrize("name", [name for _, name, _ in iter_modules(signals.__path__)])
def test_every_signal_is_listed(name: str):
    module = import_module(f"{signals.__name__}.{name}")
    made = {value for key, value in vars(module).items() if key.startswith("boost_")}
    assert made
    assert made <= set(SIGNALS)


def test_a_signal_that_is_left_out_adds_nothing():
    rows = "name,size\n" + "".join(f"row-{number},{number * 7 % 500}\n" for number in range(500))
    index, question = build(rows.encode()), "the largest size"
    largest = next(line for line in rows.splitlines() if line.endswith(",499"))
    assert largest in select(index, question, max_tokens=60).text
    others = [signal for signal in SIGNALS if signal is not boost_rows]
    assert largest not in select(index, question, max_tokens=60, signals=others).text
