"""`overspill extract` on a folder of small files: in one session, in a session for each file, and beside `rg`. Processor time."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio

from overspill import Settings
from overspill.cli.commands.extract import list_files
from overspill.session.oneshot import extract, open_extraction

SOURCES = ("src", "tests", "docs")
QUESTION = "where is the idle timeout of the database pool set"
ROUNDS = 3
MAX_TOKENS = 500


def measure(who: int, run: object) -> float:
    """Seconds of processor time: of this process, or of the processes it has waited for."""
    assert callable(run)
    before = resource.getrusage(who)
    run()
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def search_each(files: list[Path], settings: Settings) -> None:
    for file in files:
        await extract(file, QUESTION, max_tokens=MAX_TOKENS, settings=settings)


async def search_together(files: list[Path], settings: Settings) -> None:
    async with open_extraction(QUESTION, settings=settings) as ask:
        for file in files:
            await ask(file, max_tokens=MAX_TOKENS)


def main() -> None:
    root = Path(__file__).parents[2]
    found = list_files([root / name for name in SOURCES])
    texts = [file.path for file in found if file.path.suffix in (".py", ".md", ".json")][:1000]
    with tempfile.TemporaryDirectory() as made:
        settings = Settings(store_dir=str(Path(made) / "store"))
        for count in (10, 100, 1000):
            files = texts[:count]
            anyio.run(search_together, files[:2], settings)  # what is imported once
            own = resource.RUSAGE_SELF
            together = min(measure(own, partial(anyio.run, search_together, files, settings)) for _ in range(ROUNDS))
            each = min(measure(own, partial(anyio.run, search_each, files, settings)) for _ in range(ROUNDS))
            said = f"{len(files):>5} files: one session {together / each:.2f} of a session for each"
            if rg := shutil.which("rg"):
                line = [rg, "-i", "idle|timeout|database|pool|set", *map(str, files)]
                plain = partial(subprocess.run, line, stdout=subprocess.DEVNULL, check=False)
                program = [str(Path(sys.executable).with_name("overspill")), "extract", QUESTION, *map(str, files)]
                whole = partial(subprocess.run, program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                theirs = min(measure(resource.RUSAGE_CHILDREN, plain) for _ in range(ROUNDS))
                ours = min(measure(resource.RUSAGE_CHILDREN, whole) for _ in range(ROUNDS))
                said += f"; the command {ours / theirs:,.0f} times rg"
            print(said)


if __name__ == "__main__":
    main()
