"""More than 200 programs that try to get out of the sandbox: none may succeed, each ends in time, and no process is left.

python benchmarks/programs/get_out.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import anyio

from overspill import Session, Settings
from overspill.programs.tools import ProgramTool

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from escapes import has_escaped, list_attempts

SECRET = "s3cret-4711"  # noqa: S105  # what an escape would show
SECONDS = 4.0
GRACE = 4.0


def count_processes() -> int:
    """Of the interpreter, that this process started."""
    stats = (path.read_text("utf-8", "replace") for path in Path("/proc").glob("[0-9]*/stat"))
    return sum(f") {state} {os.getpid()} " in stat and "(monty)" in stat for stat in list(stats) for state in "RSDZT")


async def main(folder: Path) -> int:
    file = folder / "secret"
    file.write_text(SECRET)
    os.environ["ESCAPE_SECRET"] = SECRET
    called: list[str] = []

    async def list_tools() -> list[ProgramTool]:
        def forbidden() -> None:
            called.append("forbidden")

        return [
            ProgramTool("forbidden", "", None, forbidden),
            ProgramTool("forbidden", "", None, forbidden, "crm"),
            ProgramTool("allowed", "", None, lambda **_: "1", "crm"),
        ]

    settings = Settings(programTimeoutSecs=SECONDS, asyncTimeoutSecs=60, programTools=["crm/allowed"])
    wrong: list[str] = []
    times: list[float] = []
    families: Counter[str] = Counter()
    async with Session(settings) as session, Session() as other:
        session.offer_to_programs(list_tools)
        kept = await other.keep(f"{SECRET}\n" * 10, "theirs")
        attempts = list_attempts(str(file), {"name": kept.name, "handle": kept.handle, "id": kept.artifact_id})
        for number, attempt in enumerate(attempts):
            started = time.perf_counter()
            reply = await session.run_program(attempt.code)
            times.append(time.perf_counter() - started)
            families[attempt.family] += 1
            why = has_escaped(attempt, reply.text, SECRET, called)
            if reply.kept is not None:
                with session.open(reply.kept.name) as stored:
                    why = why or has_escaped(attempt, stored.text(), SECRET, called)
            why = why or ("it took too long" if times[-1] > SECONDS + GRACE else "")
            again = await session.run_program("1 + 1") if number % 10 == 0 else None
            why = why or ("the next program did not run" if again is not None and again.text != "2" else "")
            why = why or ("the file was changed" if file.read_text() != SECRET else "")
            if why:
                wrong.append(f"{attempt.family}: {why}: {attempt.code!r}: {reply.text[:200]!r}")
    left = count_processes()
    print(", ".join(f"{count} {family}" for family, count in families.items()))
    print(f"{len(attempts)} attempts, {len(wrong)} succeeded, longest {max(times):.1f} s of {SECONDS:g} s, {left} processes left")
    print("\n".join(wrong))
    return int(bool(wrong or left))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(anyio.run(main, Path(place)))
