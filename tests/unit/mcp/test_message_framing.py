"""Lines of a server that are no messages, and what is said to those who wait for an answer."""

import json
from collections.abc import Iterable

import anyio
import mcp_types
import pytest
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import BadLine, decode, encode, error_reply, read_batches

pytestmark = pytest.mark.anyio


async def split(chunks: Iterable[bytes], limit: int) -> list[bytes | BadLine]:
    pending = iter(chunks)

    async def receive() -> bytes:
        return next(pending, b"")

    return [line async for lines in read_batches(receive, limit) for line in reversed(lines)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"Listening on port 80", "a line that is not JSON"),
        (b"\xff\xfe", "a line that is not JSON"),
        pytest.param(b"[" * 100_000, "a line that is not JSON", id="deep"),
        (b"[]", "JSON that is not a JSON-RPC message"),
        (b'"2.0"', "JSON that is not a JSON-RPC message"),
        (b'{"id": 1, "result": {}}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "1.0", "id": 1, "result": {}}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0"}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": true, "result": {}}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "x"}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": null, "method": "x"}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": []}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": 1, "error": "no"}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "m"}}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}', "JSON that is not a JSON-RPC message"),
        (b'{"jsonrpc": "2.0", "method": "x", "params": [1]}', "JSON that is not a JSON-RPC message"),
    ],
)
def test_anything_but_a_message_is_recognized(line: bytes, problem: str):
    found = decode(line)
    assert isinstance(found, BadLine)
    assert str(found) == problem


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":"a","method":"x","params":{}}',
        b'{"jsonrpc":"2.0","id":0,"method":"x"}',
        b'{"jsonrpc":"2.0","method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":null}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800","n":123456789012345678901234567890}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}',
    ],
)
def test_a_message_is_written_as_it_was_read(line: bytes):
    found = decode(line)
    assert isinstance(found, SessionMessage)
    assert json.loads(encode(found.message)) == json.loads(line)


@pytest.mark.parametrize(
    ("head", "tail", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"id":8,"text":"aaa', b"", 7),
        (b'{"jsonrpc":"2.0","id":"k-1","result":{"text":"aaa', b"", "k-1"),
        (b'{"result":{"id":8,"a":[{"id":9}],"text":"\\"id\\":5', b'"},"id":7}', 7),
        (b'{"result":{"id":8}', b'"}, "id" : "k" , "jsonrpc": "2.0"}\r', "k"),
        (b'{"error":{"id":8,"text":"aaa', b'"id":9}},"id":7,"jsonrpc":"2.0"}', 7),
        (b'{"result":{"text":"aaa', b'"id":9}}', None),
        (b'{"jsonrpc":"2.0","result":{},"id":', b"", None),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a', b"", None),
        (b'{"level":"info","id":7,"msg":"started"}', b'{"level":"info","id":7,"msg":"started"}', None),
        (b"id 7", b"id 7", None),
        (b'"jsonrpc" "id":7', b"", None),
    ],
)
def test_an_unreadable_answer_is_matched_by_its_outermost_id(head: bytes, tail: bytes, id: object):
    found = error_reply(BadLine("a line that is not JSON", head, tail))
    assert (found.message.id if found and isinstance(found.message, mcp_types.JSONRPCError) else None) == id


async def test_a_line_over_the_limit_is_refused_with_its_size_and_its_neighbours_are_read():
    big = b'{"jsonrpc":"2.0","id":3,"result":{"text":"' + b"x" * 100_000 + b'"}}'
    chunks = [b"first\n" + big[:30_000], big[30_000:80_000], big[80_000:] + b"\nlast\n"]
    first, refused, last = await split(chunks, 50_000)
    assert (first, last) == (b"first", b"last")
    assert isinstance(refused, BadLine)
    assert str(refused) == f"a message of {len(big):,} bytes, more than the limit of 50,000"
    assert (refused.head, refused.tail) == (big[:4096], big[-4096:])
    answer = error_reply(refused)
    assert answer is not None
    assert isinstance(answer.message, mcp_types.JSONRPCError)
    assert answer.message.error.message == (
        f"The server answered with a message of {len(big):,} bytes, more than the limit of 50,000. Ask it for less."
    )


async def test_a_line_exactly_as_long_as_the_limit_is_read():
    assert await split([b"x" * 10, b"y" * 10 + b"\n"], 20) == [b"x" * 10 + b"y" * 10]


async def test_an_unfinished_last_line_is_ignored():
    assert await split([b"one\n", b'{"jsonrpc":"2.0","meth'], 100) == [b"one"]


async def test_a_complete_last_line_without_a_line_feed_is_read():
    last = b'{"jsonrpc":"2.0","method":"m"}'
    assert await split([b"one\n" + last[:9], last[9:]], 100) == [b"one", last]
    assert await split([last], len(last) - 1) == []


@pytest.mark.parametrize("end", [anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionResetError])
async def test_reading_ends_however_the_stream_ends(end: type[Exception]):
    async def receive() -> bytes:
        raise end

    assert [lines async for lines in read_batches(receive)] == []


def test_a_message_is_written_in_the_same_order_in_every_process():
    request = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping", params={"b": 1, "a": 2})
    answer = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})
    assert encode(request) == b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"b":1,"a":2}}\n'
    assert encode(answer) == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
