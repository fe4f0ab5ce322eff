"""Half of a character among the bytes that a server sent over HTTP: it gets through a reader that refuses it."""

import json

import httpx2
import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as some
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from overspill.mcp.client.surrogates import RewritingStream, Surrogates

ODD = some.text(some.sampled_from('\ud83d\ude00\ud800\udfff\\u"d8a\nß'))


def through(surrogates: Surrogates, line: bytes) -> mcp_types.JSONRPCMessage:
    read = jsonrpc_message_adapter.validate_json(surrogates.hide(line), by_name=False)
    shown = surrogates.restore(SessionMessage(read))
    assert isinstance(shown, SessionMessage)
    return shown.message


@given(ODD, ODD)
def test_any_result_arrives_unchanged(key: str, value: str):
    sent = {"jsonrpc": "2.0", "id": 1, "result": {key: [value, {"\ud83d": value}]}}
    message = through(Surrogates(), json.dumps(sent).encode())
    assert isinstance(message, mcp_types.JSONRPCResponse)
    # Two halves that meet are one character, wherever JSON is read.
    assert message.result == json.loads(json.dumps(sent["result"]))


def test_errors_and_notifications_arrive_too():
    half = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 7, "message": "a\ud83d", "data": ["\udc00b"]}})
    error = through(Surrogates(), half.encode())
    assert isinstance(error, mcp_types.JSONRPCError)
    assert error.error == mcp_types.ErrorData(code=7, message="a\ud83d", data=["\udc00b"])
    told = json.dumps({"jsonrpc": "2.0", "method": "m", "params": {"data": "\udc00"}})
    assert getattr(through(Surrogates(), told.encode()), "params", None) == {"data": "\udc00"}


def test_text_without_surrogates_is_not_touched():
    line = json.dumps({"text": "\U0001f600 \\ud83d \n"}).encode()
    assert Surrogates().hide(line) == line
    plain = b'{"text": "\xf0\x9f\x98\x80 \\\\u0041"}'
    assert Surrogates().hide(plain) is plain


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_a_stream_may_be_cut_anywhere(end: str):
    message = {"jsonrpc": "2.0", "id": 1, "result": {"text": "\\\ud83d"}}
    whole = f"event: message{end}data: {json.dumps(message)}{end}{end}: unfinished".encode()
    for cut in range(len(whole)):

        async def chunks(cut: int = cut):
            yield whole[:cut]
            yield whole[cut:]

        surrogates = Surrogates()
        hidden = RewritingStream(httpx2.Response(200, content=chunks()), surrogates.hide, 1000)
        got = b"".join([part async for part in hidden]).decode()
        await hidden.aclose()
        assert (got.splitlines()[0], got.splitlines()[-1]) == ("event: message", ": unfinished")
        read = jsonrpc_message_adapter.validate_json(got.splitlines()[1].removeprefix("data: "), by_name=False)
        shown = surrogates.restore(SessionMessage(read))
        assert isinstance(shown, SessionMessage)
        assert getattr(shown.message, "result", None) == message["result"]


@pytest.mark.anyio
async def test_an_endless_line_passes_in_parts():
    async def chunks():
        for _ in range(5):
            yield b"x" * 10

    hidden = RewritingStream(httpx2.Response(200, content=chunks()), Surrogates().hide, 25)
    assert [len(part) async for part in hidden] == [30, 20]
