"""What it costs to open a kept session again, to list its outputs and to look for one, by how many outputs it has.

In processor time, the best of several. The measure is to read the journal and decode it, which a session does anyway.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from overspill import Session, Settings, handles
from overspill.errors import HandleError
from overspill.record.events import OutputStored, ToolCalled, decode_events, encode_events
from overspill.retrieval.archive import Archive
from overspill.store.files.store import FileStore
from overspill.types import Kept, Size

NAME = "reopened"
TEXT = b"2026-11-15T04:27:09Z INFO finished in 35 ms\n"


def fill(store: FileStore, name: str, outputs: int) -> Kept:
    """As a session writes it: two events for each call, and a file for each output."""
    shelf = store.open_shelf(handles.new(), name=name, retention="keep")
    kept = None
    lines = bytearray()
    for number in range(outputs):
        kept = Kept(
            session=shelf.session,
            id=handles.new(),
            tool="dump",
            reason="size_cap",
            size=Size(len(TEXT), len(TEXT), 1, 20, False),
            sha256="0" * 64,
            created_ms=time.time_ns() // 1_000_000,
            source=f"dump: {number}",
        )
        called = ToolCalled(kept.created_ms, "dump", chars_out=300, id=kept.id, reason="size_cap", truncated=True, latency=7)
        lines += encode_events([OutputStored(kept.created_ms, kept), called])
        (shelf.directory.path / kept.id).write_bytes(TEXT)
    shelf.append_journal(bytes(lines))
    shelf.close()
    assert kept is not None
    return kept


async def best_of(rounds: int, work: Callable[[], Awaitable[object]]) -> float:
    """In milliseconds of processor time."""
    spent: list[float] = []
    for _ in range(rounds):
        started = time.process_time()
        await work()
        spent.append(time.process_time() - started)
    return min(spent) * 1000


async def measure(root: Path, outputs: int, rounds: int) -> None:
    store, settings = FileStore(root), Settings(storeDir=str(root))
    kept = fill(store, NAME, outputs)
    fill(store, "team/" + handles.new(), outputs)
    session = Session(settings, name=NAME)

    async def decode() -> None:
        sum(1 for _ in decode_events(store.read_shelf(kept.session).journal()))

    async def reopen() -> None:
        async with session:
            pass

    async def find() -> None:
        assert Archive([FileStore(root)]).find(kept.name).kept == kept

    async def miss() -> None:
        with suppress(HandleError):
            Archive([FileStore(root)]).find("out_zzzzzz")

    decoded, opened = await best_of(rounds, decode), await best_of(rounds, reopen)
    print(f"{outputs:>7,} outputs: read and decode the journal {decoded:6.0f} ms, open the session {opened:6.0f} ms")
    print(
        f"        archive: find by name {await best_of(rounds, find):6.0f} ms, unknown name {await best_of(rounds, miss):6.0f} ms"
    )
    async with Session(settings, name="team", shared=True) as team:

        async def list_kept() -> None:
            assert len(team.kept()) == outputs

        async def ask() -> None:
            await team.invoke("tool_output", {"handle": "out_zzzzzz"})

        listed, missed = await best_of(rounds, list_kept), await best_of(rounds, ask)
        print(f"        shared session: kept() {listed:6.0f} ms, unknown name {missed:6.0f} ms")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for outputs in (arguments.outputs // 10, arguments.outputs):
        with TemporaryDirectory() as folder:
            anyio.run(measure, Path(folder), outputs, arguments.rounds)


if __name__ == "__main__":
    main()
