"""What travels through the queue is one JSON string, and nothing else that lies there is taken for a call."""

import pytest

from overspill.errors import BadRequest
from overspill.task_queue.payload import QueuedCall, decode_call, encode_arguments, encode_call

JOB = "0195f3a2-7b1c-7e42-9d5a-3f7c1e8b2a64"


def test_a_call_comes_back_as_it_was():
    call = QueuedCall(JOB, "team", "crawl", {"url": "ü", "depth": 2}, server="web", may_take=3.5)
    assert decode_call(encode_call(call)) == call


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "{}",
        "[]",
        "null",
        b"{}",
        None,
        7,
        '{"job":"x","family":"team","tool":"crawl"}',
        f'{{"job":"{JOB}","family":"","tool":"crawl"}}',
        f'{{"job":"{JOB}","family":"team","tool":""}}',
        f'{{"job":"{JOB}","family":"team","tool":"crawl","code":"rm"}}',
        f'{{"job":"{JOB}","family":"team","tool":"crawl","args":[]}}',
        f'{{"job":"{JOB}","family":"{"x" * 201}","tool":"crawl"}}',
        "[" * 100_000,
    ],
    ids=lambda value: repr(value)[:40],
)
def test_anything_else_is_refused(payload: object):
    with pytest.raises(BadRequest, match="not a call"):
        decode_call(payload)


def test_arguments_that_are_not_json_are_refused():
    with pytest.raises(BadRequest, match="not JSON"):
        encode_arguments("crawl", {"where": object()})
