"""JSON with whatever a program may put into it: written, read and cleaned."""

import json
import subprocess
import sys
from typing import Any

import pytest
from msgspec import Struct

from overspill.text.lenient_json import clean_value, dumps, loads


class Pair(Struct):
    left: str
    right: int


@pytest.mark.parametrize(
    "value", [{"a": ["ü", None, 1.5]}, {"a\ud83d": "\udc00"}, [2**80, "\ud800"], {"deep": [{"x": "\udfff"}]}]
)
def test_what_is_written_is_read_again(value: Any):
    assert loads(dumps(value)) == value
    assert json.loads(dumps(value, indent=2)) == value


def test_nouns_are_written_too():
    assert dumps({"pair": Pair("a", 1)}) == b'{"pair":{"left":"a","right":1}}'
    assert dumps({"pair": Pair("\ud800", 1)}, indent=2) == (b'{\n  "pair": {\n    "left": "\\ud800",\n    "right": 1\n  }\n}')


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(data: bytes):
    with pytest.raises((ValueError, RecursionError)):
        loads(data)


def test_strings_with_raw_line_ends_are_read_only_on_request():
    assert loads('{"a": "b\nc"}', allow_control_characters=True) == {"a": "b\nc"}
    with pytest.raises(ValueError, match="control character"):
        loads('{"a": "b\nc"}')


def test_a_string_may_hold_a_lone_surrogate():
    assert loads('["\ud800", "\\udfff"]') == ["\ud800", "\udfff"]


def test_a_value_is_cleaned_through_and_through_and_otherwise_left_alone():
    assert clean_value({"a\ud800": ["\udfff", 2**80, None]}) == {"a\ufffd": ["\ufffd", 2**80, None]}
    plain = {"a": "\U0001f600", "b": 2**80}
    assert clean_value(plain) is plain


THREADS = """
import sys, threading
from msgspec import defstruct
from overspill.text.lenient_json import parse

sys.setswitchinterval(1e-6)
for _ in range(100):
    inner = defstruct("Inner", [("a", int), ("b", list[int] | None)])
    outer = defstruct("Outer", [("x", inner), *((f"y{number}", dict[str, list[inner]] | None, None) for number in range(10))])
    together = threading.Barrier(8)

    def read():
        together.wait()
        assert parse(b'{"x":{"a":1,"b":null},"y3":{"c":[{"a":1,"b":[2]}]}}', outer).x.a == 1

    threads = [threading.Thread(target=read) for _ in range(8)]
    [each.start() for each in threads]
    [each.join() for each in threads]
print("still here")
"""


def test_threads_that_use_a_type_for_the_first_time_together_do_not_end_the_process():
    ended = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.returncode) == ("still here\n", 0), ended.stderr
