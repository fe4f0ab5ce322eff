"""Programs over stored outputs beside the same programs in CPython, and beside the right answers; and end to end over 10 MB.

  python -m benchmarks.programs.questions --material DIR

DIR has `letta/` (the ten files of letta-evals' filesystem-agent and its filesystem_cloud.jsonl as questions.jsonl) and `apis/`
(countries.json of mledoze/countries, all.json of akabab/superhero-api as heroes.json).
"""

from __future__ import annotations

import argparse
import io
import json
import re
import statistics
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import anyio
import duckdb

from benchmarks.programs.hand_written import APIS, LETTA
from overspill import Session, Settings

SPEED = """\
rows = load("rows.json")
late = [row for row in rows if row["total"] > 1000]
sums = {}
for row in rows:
    sums[row["id"] % 7] = sums.get(row["id"] % 7, 0) + row["total"]
print(len(late), sums)
"""
ROUNDS = 5


def run_in_cpython(code: str, folder: Path) -> str:
    def load(name: str) -> Any:
        text = (folder / name).read_text("utf-8")
        return json.loads(text) if name.endswith(".json") else text.splitlines()

    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "program", "exec"), {"load": load})  # noqa: S102  # our own programs
    return printed.getvalue().strip()


def ask_duckdb(statement: str, folder: Path) -> str:
    connection = duckdb.connect()
    for file in folder.glob("*.json"):
        objects = f"read_json_objects('{file}', format='array')"
        connection.execute(f"CREATE VIEW {file.stem} AS SELECT json FROM {objects}")  # noqa: S608  # our own names
    (row,) = connection.execute(statement).fetchall()
    return str(row[0])


def normalise(text: str) -> str:
    return re.sub(r"[$,]|\s*records?\b", "", text).strip()


async def open_folder(session: Session, folder: Path) -> dict[str, str]:
    files = sorted(folder.iterdir())  # noqa: ASYNC240  # nothing else runs here
    return {file.name: (await session.keep(file.read_bytes(), file.name)).name for file in files}


async def check(kind: str, programs: list[str], right: list[str], folder: Path) -> None:
    same = correct = 0
    async with Session(Settings(asyncTimeoutSecs=300)) as session:
        names = await open_folder(session, folder)
        for number, (code, expected) in enumerate(zip(programs, right, strict=True)):
            reply = await session.run_program(code, names=names)
            plain = run_in_cpython(code, folder)
            same += reply.text == plain
            correct += normalise(reply.text) == normalise(expected)
            if reply.text != plain or normalise(reply.text) != normalise(expected):
                print(f"  {kind} {number}: {reply.text[:300]!r}, CPython {plain[:200]!r}, expected {expected!r}")
    print(f"{kind}: {len(programs)} programs, {same} as in CPython, {correct} right")


async def measure(size: int, folder: Path) -> None:
    """Everything from the call to the answer, with a new process, beside reading the file, `json.loads` and the same loop."""
    rows: list[dict[str, Any]] = []
    while len(rows) * 128 < size:
        number = len(rows)
        rows.append(
            {
                "id": number,
                "name": f"user {number}",
                "tags": ["a", "b"],
                "total": number * 1.5,
                "of": {"x": number, "y": "z" * 20},
            }
        )
    (folder / "rows.json").write_text(json.dumps(rows))
    async with Session(Settings(asyncTimeoutSecs=300)) as session:
        names = await open_folder(session, folder)

        async def ours() -> str:
            return (await session.run_program(SPEED, names=names)).text

        assert await ours() == run_in_cpython(SPEED, folder)
        figures: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            await ours()
            between = time.perf_counter()
            run_in_cpython(SPEED, folder)
            figures.append((between - started, time.perf_counter() - between))
    mine, plain = (statistics.median(column) for column in zip(*figures, strict=True))
    bytes_ = (folder / "rows.json").stat().st_size
    print(f"{bytes_ / 1e6:.1f} MB of JSON: {mine:.2f} s, CPython and json {plain:.2f} s, {mine / plain:.2f} x")


def main(material: Path, make_folder: Callable[[], Path]) -> None:
    asked = [json.loads(line) for line in (material / "letta" / "questions.jsonl").read_text("utf-8").splitlines()]
    expected = [question["ground_truth"] for question in asked[: len(LETTA)]]
    anyio.run(check, "letta", LETTA, expected, material / "letta")
    right = [ask_duckdb(statement, material / "apis") for _, statement in APIS]
    anyio.run(check, "apis", [code for code, _ in APIS], right, material / "apis")
    anyio.run(measure, 10_000_000, make_folder())


if __name__ == "__main__":
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--material", type=Path, required=True)
    with tempfile.TemporaryDirectory() as folder:
        main(parser.parse_args().material, lambda: Path(folder))
