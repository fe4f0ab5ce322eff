"""A few programs of each family that try to get out. `benchmarks/programs/get_out.py` tries all."""

from __future__ import annotations

import gc
import os
from itertools import groupby
from pathlib import Path

import pytest
from escapes import has_escaped, list_attempts
from extras import needs
from slow import slow

from overspill import Session, Settings
from overspill.programs.tools import ProgramTool

pytestmark = needs("pydantic_monty", "programs")
SECRET = "s3cret-4711"  # noqa: S105  # what an escape would show
SLOW = ("allocations", "loops", "recursion")


def list_workers() -> list[str]:
    """Processes of the interpreter that this process started and that still run."""
    found: list[str] = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        stat = file.read_text("utf-8", "replace")
        if "(monty)" in stat and stat.rpartition(")")[2].split()[1] == str(os.getpid()):
            found.append(stat)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not list processes in /proc")
@pytest.mark.parametrize("step", [12, *slow(4)])
async def test_no_program_gets_out_and_the_next_one_runs(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    monkeypatch.setenv("ESCAPE_SECRET", SECRET)
    called: list[str] = []

    async def list_tools() -> list[ProgramTool]:
        return [ProgramTool("forbidden", "", None, lambda: called.append("forbidden"), server) for server in ("", "crm")] + [
            ProgramTool("allowed", "", None, lambda: "1", "crm")
        ]

    async with Session(Settings(programTimeoutSecs=1, programTools=["crm/allowed"])) as session, Session() as other:
        session.offer_to_programs(list_tools)
        kept = await other.keep(f"{SECRET}\n" * 10, "theirs")
        others = {"name": kept.name, "handle": kept.handle, "id": kept.artifact_id}
        for family, attempts in groupby(list_attempts(str(file), others), key=lambda attempt: attempt.family):
            for attempt in list(attempts)[:: 2 * step + 1 if family in SLOW else step]:
                reply = await session.run_program(attempt.code)
                assert has_escaped(attempt, reply.text, SECRET, called) == "", (attempt.code, reply.text)
            assert (await session.run_program("1 + 1")).text == "2", family
    gc.collect()
    assert list_workers() == []
    assert file.read_text() == SECRET


async def test_what_a_process_writes_to_standard_error_does_not_reach_ours(capfd: pytest.CaptureFixture[str]):
    async with Session() as session:
        reply = await session.run_program("x = list(range(10**9))\nx.sort(key=lambda n: -n)", background=False)
        assert reply.is_error
    assert capfd.readouterr().err == ""
