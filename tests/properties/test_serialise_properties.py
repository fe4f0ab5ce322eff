"""Values as JSON: whatever the way and the size, the text is that of `json.dumps`."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.gate.serialise import PieceLimits, to_json, write_json, write_small

pydantic = pytest.importorskip("pydantic")


class Model(pydantic.BaseModel):
    id: int
    seen: datetime.datetime
    share: float = pydantic.Field(serialization_alias="Share")


@dataclasses.dataclass
class Point:
    x: float
    y: Any


class Colour(enum.Enum):
    RED = 1.5e20


class Word(str, enum.Enum):  # noqa: UP042
    HI = "hi"


Pair = namedtuple("Pair", "a b")
MOMENT = datetime.datetime(2026, 11, 15, 4, 27, 9, 5, tzinfo=datetime.UTC)
ODD: list[Any] = [
    MOMENT,
    MOMENT.date(),
    uuid.UUID(int=5),
    decimal.Decimal("1e400"),
    b"\x00\xff",
    {1, 2},
    Point(1e-9, [float("nan")]),
    Model(id=1, seen=MOMENT, share=1e20),
    Colour.RED,
    Word.HI,
    Pair(1, "b"),
    OrderedDict(b=1, a=2),
    range(3),
    2**70,
    -(2**63) - 1,
]
TEXTS = st.text(st.characters(codec=None, categories=None), max_size=20)  # type: ignore[arg-type]
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.sampled_from(ODD))
KEYS = st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none(), st.just(Word.HI))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6), st.dictionaries(KEYS, inner, max_size=6), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=40,
)


def dumped(value: Any) -> bytes | type[Exception]:
    """What has been written until now."""
    try:
        return to_json(value).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        return type(error)


def written(value: Any, *limits: PieceLimits) -> bytes | type[Exception]:
    try:
        return b"".join(write_json(value, *limits))
    except (TypeError, ValueError, RecursionError) as error:
        return type(error)


@given(VALUES)
def test_a_small_value_is_written_like_json(value: Any) -> None:
    expected = dumped(value)
    if isinstance(expected, bytes):
        assert write_small(value) == expected.decode("utf-8", "surrogatepass")


@given(VALUES, st.integers(1, 12))
def test_a_value_in_pieces_of_any_size_is_written_like_json(value: Any, most: int) -> None:
    assert written(value, PieceLimits(most, most, max(1, most // 2))) == dumped(value)


@given(st.floats())
def test_every_number_is_written_like_json(number: float) -> None:
    assert write_small([number, 1.5, 0.0, -0.0]) == json.dumps([number, 1.5, 0.0, -0.0], separators=(",", ":"))


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = [1, 2]
    value.append({"again": value})
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"rows": [{"id": number, "name": f"row {number}", "share": number / 7} for number in range(30_000)]},
        {f"key {number}": [number, None, {"deep": [True]}] for number in range(20_000)},
        ['x\n"\\é\ud800' * 300_000, "y"],
        {"x" * 2_000_000: 1, "y" * 2_000_000: "z", "w" * 2_000_000: []},
        [Point(number, "p") for number in range(5_000)],
        [Model(id=number, seen=MOMENT, share=0.5) for number in range(3_000)],
        [*range(30_000), object(), *range(30_000)],
        [[*range(25_000)], nested(900)],
        nested(100_000),
        [endless(), [*range(30_000)]],
    ],
    ids=["rows", "keys", "text", "long keys", "dataclasses", "models", "unknown", "deep", "too deep", "endless"],
)
def test_a_large_value_is_written_like_json(value: Any) -> None:
    assert written(value) == dumped(value)


@pytest.mark.parametrize("value", [[*range(30_000)], {"a": {"b": [{"c": "x" * 2_000_000}]}}, [Point(1, 2)] * 2_000])
def test_a_large_value_is_not_written_at_once(value: Any) -> None:
    assert write_small(value) is None
    assert max(map(len, write_json(value))) < 1_000_000


def test_a_large_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = [[*range(30_000)]]
    value[0].append(value)
    assert written(value) is dumped(value) is ValueError
