"""However the bytes of a server are chunked, its messages arrive the same, equal in every field."""

import json
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import BadLine, decode, encode, read_batches

LIMIT = 60

texts = st.text(st.characters(exclude_categories=()))  # lone surrogates too
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(texts, values, max_size=4)
ids = st.integers() | st.text()
messages = st.one_of(
    st.builds(lambda id, result: {"id": id, "result": result}, ids, objects),
    st.builds(lambda id, params: {"id": id, "method": "tools/call", "params": params}, ids, objects),
    st.builds(lambda params: {"method": "notifications/x", "params": params}, objects),
    st.builds(lambda id, data: {"id": id, "error": {"code": -1, "message": "m", "data": data}}, ids, values),
)


@given(messages, st.booleans())
def test_a_message_is_passed_on_equal_in_every_field(message: dict[str, Any], ascii: bool):
    line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    found = decode(line)
    if isinstance(found, BadLine):
        assert not ascii  # a lone surrogate as bytes is not UTF-8
    else:
        assert isinstance(found, SessionMessage)
        assert json.loads(encode(found.message)) == json.loads(line)


@given(st.lists(st.binary(max_size=2 * LIMIT).map(lambda line: line.replace(b"\n", b""))), st.data())
def test_any_chunking_gives_the_same_lines(content: list[bytes], data: st.DataObject):
    stream = b"".join(line + b"\n" for line in content)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True) if start < end]

    async def split() -> list[bytes | str]:
        pending = iter(chunks)

        async def receive() -> bytes:
            return next(pending, b"")

        batches = [batch async for batch in read_batches(receive, LIMIT)]
        return [str(line) if isinstance(line, BadLine) else line for batch in batches for line in reversed(batch)]

    assert anyio.run(split) == [
        line if len(line) <= LIMIT else f"a message of {len(line):,} bytes, more than the limit of {LIMIT}" for line in content
    ]
