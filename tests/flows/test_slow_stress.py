"""Many jobs and huge outputs: everything kept, nothing twice, memory bounded. `benchmarks/gate/jobs.py` has the times."""

import gc
import hashlib
import os
import random
from pathlib import Path

import anyio
import pytest

from overspill import Session, Settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.both_loops, pytest.mark.no_cover]

MIB = 1 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def completed(session: Session) -> list[str]:
    told: list[str] = []
    while (text := (await session.invoke("wait_for_tool_output", {})).text) != "No async tools running.":
        told += [line.split()[1] for line in text.splitlines()[1:]]
    return told


@pytest.mark.promise("nothing-lost")
async def test_a_thousand_jobs_are_all_kept_byte_for_byte_and_told_of_once(tmp_path: Path):
    chance = random.Random(5)  # noqa: S311
    outputs = [chance.randbytes(chance.choice((50, 5_000, 50_000))).hex() for _ in range(1000)]
    pauses = [chance.uniform(0, 0.2) for _ in outputs]
    most = running = 0

    async def tool(n: int) -> str:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await anyio.sleep(pauses[n])
        running -= 1
        return outputs[n]

    with anyio.fail_after(100):
        async with Session(Settings(storeDir=str(tmp_path), maxRunning=64)) as session:
            ids = [await session.start(f"job-{n}", {"n": n}, tool) for n in range(1000)]
            told = await completed(session)
            for id, output in zip(ids, outputs, strict=True):
                with session.open(id) as stored:
                    assert stored.text() == output
                    assert stored.kept.sha256 == hashlib.sha256(output.encode()).hexdigest()
    assert sorted(told) == sorted(f"job-{n}" for n in range(1000))
    assert most == 64


async def test_200_megabytes_returned_in_the_background_are_kept_and_leave_memory(tmp_path: Path):
    line = "2026-11-15T04:27:09Z INFO worker 17 finished job 4711 in 35 ms\n"
    size = 200_000_000 // len(line) * len(line)

    with anyio.fail_after(100):
        async with Session(Settings(storeDir=str(tmp_path), retention="session")) as session:
            await session.call("warm", {}, lambda: line * 20_000)
            before = resident()
            id = await session.start("huge", {}, lambda: line * (size // len(line)))
            assert (await session.invoke("wait_for_tool_output", {})).text == (
                f"Completed tools:\n- huge (id: {id}, size: 200.0MB)"
            )
            gc.collect()
            assert resident() - before < 64 * MIB
            raw = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
            assert raw.text == f"Response too large ({size} bytes). Use ask or slice mode."
            end = await session.invoke("get_tool_output", {"id": id, "mode": "slice", "slice": {"start": size - 10}})
            assert end.text == line[-10:]
