"""What travels through the queue: one JSON string, with names, handles and small arguments."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from overspill import handles
from overspill.errors import BadRequest
from overspill.text.humanize import one_line

MAX_ARGUMENT_BYTES = 16 * 1024
"""Larger arguments are stored, and their handle travels instead."""
_MAX_NAME_CHARS = 200


class QueuedCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    job: str
    """The id of the job, of the session part it writes to, and of its output."""
    family: str
    """The family whose outputs it may read, and to which its own belongs."""
    tool: str
    args: dict[str, Any] = {}
    args_in: str = ""
    """The handle of the arguments, if they are large."""
    server: str = ""
    may_take: float | None = None
    """The seconds that the call may take."""


_decoder = msgspec.json.Decoder(QueuedCall)


def encode_call(call: QueuedCall) -> str:
    return msgspec.json.encode(call).decode()


def encode_arguments(tool: str, args: object) -> bytes:
    try:
        return msgspec.json.encode(args)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(
            f"The arguments of {one_line(tool)} cannot be sent to a worker, because they are not JSON: {one_line(str(error))}."
        ) from None


def decode_call(payload: object) -> QueuedCall:
    """The call in a message. Raises BadRequest for anything else in the queue."""
    try:
        call = _decoder.decode(payload if isinstance(payload, str) else b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"This is not a call that Overspill has queued: {one_line(str(error))}.") from None
    if not handles.is_uuid(call.job) or not 0 < len(call.family) <= _MAX_NAME_CHARS or not call.tool:
        raise BadRequest("This is not a call that Overspill has queued: its ids are malformed.")
    return call
