"""Opens a queue. What speaks to it is imported only then."""

from __future__ import annotations

import asyncio

from overspill.errors import BadRequest, MissingPackage
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.remote import Queue


def open_queue(address: QueueAddress) -> Queue:
    """Call it on the event loop that uses the queue."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise BadRequest("A session with `jobs` runs on asyncio only, because pydocket does.") from None
    try:
        from overspill.task_queue.queue import JobQueue  # noqa: PLC0415  # most sessions have no queue
    except ImportError as missing:
        raise MissingPackage(f"The queue {address.shown}", "docket") from missing
    return JobQueue(address)
