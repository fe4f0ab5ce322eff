"""What became of a call on a worker, and the tool's result, made again from what the worker has stored."""

from __future__ import annotations

import json
from typing import Any

from overspill.errors import RemoteFailure
from overspill.retrieval.group import JobRecord
from overspill.text import encoding
from overspill.types import Output, OutputForm
from overspill.wording import INTERRUPTED


def find_end(record: JobRecord | None, *, is_queued: bool) -> JobRecord | None:
    """The record if the job is over. Raises RemoteFailure for a job that nobody will finish.

    `is_queued`: whether the queue still has it, so that a worker may take it, or take it again.
    """
    if record is not None and record.change.state in ("ready", "failed"):
        return record
    if (record is not None and record.is_live) or (is_queued and (record is None or record.change.is_repeatable)):
        return None
    if record is None:
        raise RemoteFailure("the queue has lost the call before a worker took it. Call the tool again.")
    raise RemoteFailure(INTERRUPTED)


def restore_result(form: OutputForm, data: bytes, *, is_error: bool) -> Any:
    match form:
        case "none":
            return None
        case "bytes":
            result: Any = data
        case "json":
            result = json.loads(data)
        case "blocks":
            return Output(json.loads(data), is_error=is_error)
        case "text":
            result = encoding.decode(data)
    return Output(encoding.decode(data), is_error=True) if is_error else result  # pyright: ignore[reportArgumentType]
