"""Opens a queue. What speaks to it is imported only then."""

from __future__ import annotations

import asyncio

from overspill.engine.address import QueueAddress
from overspill.engine.remote import Queue
from overspill.errors import BadRequest, MissingPackage


def open_queue(address: QueueAddress) -> Queue:
    """Call it on the event loop that uses the queue."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise BadRequest("A session with `jobs` runs on asyncio only, because pydocket does.") from None
    try:
        from overspill.engine.queue import JobQueue  # noqa: PLC0415  # most sessions have no queue
    except ImportError as missing:
        raise MissingPackage(f"The queue {address.shown}", "docket") from missing
    return JobQueue(address)
