"""Large JSON that is taken apart is read as if it were not, whatever it holds and wherever it is cut."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from overspill.text.lenient_json import loads, loads_last

TEXT = some.text(some.sampled_from('a ,;u0d8\\"\n\t/ßé漢\U0001f600\ud83d\ude00{}[]'))
VALUE = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | TEXT,
    lambda inside: some.lists(inside) | some.dictionaries(TEXT, inside),
)


def read(line: bytes, part_bytes: int) -> Any:
    lines = [b"another line", line]
    try:
        return loads_last(lines, part_bytes)
    except (ValueError, RecursionError) as error:
        return type(error)
    finally:
        assert lines == [b"another line"]


def read_plainly(line: bytes) -> Any:
    try:
        return loads(line)
    except (ValueError, RecursionError) as error:
        return type(error)


@given(VALUE, some.integers(0, 12), some.booleans(), some.sampled_from([None, 2]))
def test_a_value_is_the_same(value: Any, part_bytes: int, ascii: bool, indent: int | None):
    line = json.dumps(value, ensure_ascii=ascii, indent=indent).encode(errors="surrogatepass")
    assert repr(read(line, part_bytes)) == repr(read_plainly(line))


@given(some.text(some.sampled_from('a ,"\\u0d8{}[]:1e.-')).map(str.encode) | some.binary(), some.integers(0, 12))
@example(b'"a "x" b"', 0)
@example(b'"a\\ b"', 0)
@example(b'{"a": "b" "c"}', 0)
@example(b'["a b", "c"', 0)
@example(b'{"a": 1, "a": [2, 3]}', 0)
@example(b' "a b" ', 0)
@example(b'"0', 0)
@example(b'"a\\"', 0)
@example(b"", 0)
def test_what_is_not_json_is_refused_in_the_same_way(line: bytes, part_bytes: int):
    assert repr(read(line, part_bytes)) == repr(read_plainly(line))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_nested_deeply_is_read_or_refused_in_the_same_way(opening: bytes):
    for depth in (5, 6, 7, 100, 100_000):
        line = opening * depth + b"1" + {b"[": b"]"}.get(opening, b"}") * depth
        assert repr(read(line, 4)) == repr(read_plainly(line))
