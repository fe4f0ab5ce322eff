"""The frames that a front and a hub exchange: one byte for the kind, four for the length, and that many bytes.

A front sends its lines to the hub, which confirms each with `TAKEN` before it acts on it. If the hub dies, the front then knows
which lines were not acted on, and which requests will get no answer. Confirmations go over a socket of their own, which the front
reads only when there is something else to do, so they wake up no process. A hub that finds it full, or none, uses the connection.
"""

from __future__ import annotations

HEADER_BYTES = 5
MAX_FRAME_BYTES = 1 << 20
MAX_HELLO_BYTES = 16 << 20
"""The most bytes of a hello. Its arguments and environment may take several megabytes on some systems."""

# From a front.
HELLO, DATA, REPLAY, END = b"H", b"D", b"S", b"Z"
"""Who the front is and what it wants; bytes of its client; a line that an earlier hub has answered; the end of its input."""
QUERY = b"Q"
"""The question of a command, which sends it instead of a hello: `status` or `stop`."""
# From a hub.
WELCOME, REFUSED = b"W", b"N"
"""The hub serves this front, or says why it does not. The front reads nothing from its client before that."""
TAKEN, LINES, ANSWER, ERRORS, EXIT = b"A", b"L", b"R", b"E", b"X"
"""A line of the client was taken; lines for the client; the answer to a request; bytes for standard error; the exit code."""

IS_REQUEST, IS_STATE = 1, 2
"""Flags in `TAKEN`: the line is a request with the id that follows; the front repeats the line to the next hub if one dies."""


def pack(kind: bytes, payload: bytes = b"") -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


def unpack(data: bytearray, limit: int) -> tuple[bytes, bytes] | None:
    """Take the first frame out of `data`; None if it is not complete yet. Raises ValueError for a frame over the limit."""
    if len(data) < HEADER_BYTES:
        return None
    size = int.from_bytes(data[1:HEADER_BYTES], "big")
    if size > limit:
        raise ValueError(f"a frame of {size:,} bytes, more than the limit of {limit:,}")
    if len(data) < HEADER_BYTES + size:
        return None
    frame = bytes(data[:1]), bytes(data[HEADER_BYTES : HEADER_BYTES + size])
    del data[: HEADER_BYTES + size]
    return frame


def pack_answer(id: bytes, line: bytes) -> bytes:
    """Write the line that answers the request with this id, which may be as long as a line."""
    return pack(ANSWER, len(id).to_bytes(4, "big") + id + line)


def unpack_answer(payload: bytes) -> tuple[bytes, bytes]:
    size = 4 + int.from_bytes(payload[:4], "big")
    return payload[4:size], payload[size:]


def pack_hello(words: list[str], folder: str, environ: list[str], version: str) -> bytes:
    """Write the payload of a hello, separated by zero bytes, which neither arguments nor variables can contain."""
    parts = [version, folder, str(len(words)), *words, *environ]
    return pack(HELLO, b"\0".join(part.encode("utf-8", "surrogateescape") for part in parts))


def unpack_hello(payload: bytes) -> tuple[str, str, list[str], list[str]]:
    """Return the version, the folder, the arguments and the variables. Raises ValueError if they cannot be read."""
    version, folder, count, *rest = (part.decode("utf-8", "surrogateescape") for part in payload.split(b"\0"))
    size = int(count)
    if not 0 <= size <= len(rest):
        raise ValueError("a bad hello")
    return version, folder, rest[:size], rest[size:]
