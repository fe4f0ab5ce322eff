"""Secrets in what others read and store: the viewer of past sessions, and the workers of a queue."""

import random
import string
from pathlib import Path

import anyio
import pytest

from overspill import Session, Settings, handles
from overspill.record.events import OutputExtracted
from overspill.redaction.policy import Redaction
from overspill.retrieval.archive import Archive
from overspill.store.memory import MemoryStore
from overspill.store.open import open_store
from overspill.task_queue.payload import QueuedCall

pytestmark = pytest.mark.anyio
SECRET = "".join(random.Random(23).choices(string.ascii_letters + string.digits, k=24))  # noqa: S311
NAMED = {"SERVICE_TOKEN": SECRET}
LINES = "a line of a log\n" * 900
LOG = f"{LINES}we connect with {SECRET} now\n{LINES}"


@pytest.mark.parametrize("place", ["off", "on"])
async def test_the_viewer_does_not_show_secrets_in_quotes_from_before_they_were_hidden(place: str) -> None:
    pytest.importorskip("starlette")
    from overspill.view.library import Library, find_citation  # noqa: PLC0415

    store = MemoryStore()
    async with Session(Settings(), store=store) as session:
        reply = await session.call("logs", {}, lambda: LOG)
        assert reply.kept is not None
        await session.extract(reply.kept.name, "we connect with")
        library = Library(Archive([store], redaction=Redaction(Settings(redact={"shown": place}), NAMED)))
        (event,) = [each for each in library.events(reply.kept.session) if isinstance(each, OutputExtracted)]
        citation = find_citation(library, reply.kept.session, event.op)
    assert citation.is_sound
    assert any(SECRET in quote.text for quote in citation.quotes) == (place == "off")


async def test_a_worker_does_not_store_the_values_that_it_knows(tmp_path: Path) -> None:
    pytest.importorskip("docket")
    from overspill.worker.run_call import CallRunner  # noqa: PLC0415
    from overspill.worker.tools import WorkerTool  # noqa: PLC0415

    async def is_wanted() -> bool:
        return True

    runner = CallRunner(open_store(str(tmp_path)), Settings(redact={"stored": "on"}), NAMED)
    call = QueuedCall(handles.new(), "family", "logs")
    assert await runner.run(call, WorkerTool("logs", lambda: LOG), is_wanted, anyio.Event()) == "over"
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"we connect with [redacted:service-token:" in stored
    assert SECRET.encode() not in stored
