"""Whether the cost of commands and new sessions stays proportional to the number of stored sessions.

Every session is in a separate run, as the proxy leaves them, with one output. For 100 sessions, 1,000 and 5,000: the processor
time of each command, what it costs for each session, and that as a share of the cost at 100. A command that looks at every
session in a reasonable way stays near or below 1. Run: python benchmarks/sessions/many_sessions.py [counts …]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from overspill import Session, Settings, handles

COUNTS = (100, 1_000, 5_000)
ROUNDS = 3
RUN = "from overspill.cli import main; main()"
OPEN = """
import sys, anyio
from overspill import Session, Settings
async def main():
    async with Session(Settings(storeDir=sys.argv[1], retention="keep"), name=sys.argv[2]):
        pass
anyio.run(main)
"""
EXPIRE = """
import sys
from pathlib import Path
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits
print(len(FileStore(Path(sys.argv[1])).expire(KeepLimits(float(sys.argv[2]), 1 << 40)).sessions))
"""


async def store_one(root: Path) -> str:
    async with Session(Settings(storeDir=str(root)), name="proxy/first") as session:
        await session.call("read_log", {}, lambda: "2026-11-15 INFO served in 35 ms\n" * 1_000)
        return session.id


def copy(folder: Path, root: Path) -> None:
    """The same session once more, under another id and name, in another run."""
    session = handles.new()
    target = root / f"overspill-{os.urandom(6).hex()}" / f"session-{session}"
    target.parent.mkdir(0o700)
    target.mkdir(0o700)
    old = folder.name.removeprefix("session-")
    for file in folder.iterdir():
        data = file.read_bytes()
        made = target / (handles.new() if handles.is_uuid(file.name) else file.name)
        made.write_bytes(data.replace(old.encode(), session.encode()).replace(b"proxy/first", f"proxy/{session}".encode()))
        made.chmod(0o600)
    (output,) = (file.name for file in target.iterdir() if handles.is_uuid(file.name))
    (first,) = (file.name for file in folder.iterdir() if handles.is_uuid(file.name))
    journal = target / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(first.encode(), output.encode()))


def measure(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Seconds of processor time and by the clock, the best of several rounds."""

    def once() -> tuple[float, float]:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - started

    return min(once() for _ in range(ROUNDS))


def commands(root: Path) -> dict[str, Callable[[], list[str]]]:
    chosen = ["--set", f"storeDir={root}"]
    cli = [sys.executable, "-c", RUN]
    code = [sys.executable, "-c"]
    return {
        "artifacts list": lambda: [*cli, "artifacts", "list", *chosen],
        "artifacts list --json": lambda: [*cli, "artifacts", "list", "--json", *chosen],
        "stats": lambda: [*cli, "stats", *chosen],
        "jobs": lambda: [*cli, "jobs", *chosen],
        "verify": lambda: [*cli, "verify", *chosen],
        "doctor": lambda: [*cli, "doctor", *chosen],
        "a new kept session": lambda: [*code, OPEN, str(root), ""],
        "a named session again": lambda: [*code, OPEN, str(root), "proxy/first"],
        "expiry that removes nothing": lambda: [*code, EXPIRE, str(root), "7"],
    }


def main() -> None:
    counts = tuple(map(int, sys.argv[1:])) or COUNTS
    costs: dict[str, float] = {}
    with TemporaryDirectory() as place:
        root, home = Path(place) / "store", Path(place) / "home"
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        (folder,) = root.glob(f"*/session-{anyio.run(store_one, root)}")
        empty = {name: measure(make(), env)[0] for name, make in commands(root).items()}
        made = 1
        for count in counts:
            while made < count:
                copy(folder, root)
                made += 1
            print(f"{count:,} sessions")
            for name, make in commands(root).items():
                processor, wall = measure(make(), env)
                each = (processor - empty[name]) / count
                share = each / costs.setdefault(name, each)
                print(f"  {name:28} {processor:6.2f} s, {wall:6.2f} s by the clock, {each * 1e6:6.0f} µs each, {share:5.2f}")


if __name__ == "__main__":
    main()
