"""How many files and functions of Overspill a call enters: a small result, a large one, and one that is read back.

python benchmarks/gate/entered.py [--list]
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anyio

from overspill.session.session import Session
from overspill.settings import Settings

SMALL = "x" * 2048
LIMITS = {"small": (20, 55), "stored": (45, None)}
_SOURCE = str(Path(sys.modules["overspill"].__file__ or "").parent)


def log_text(turn: int) -> str:
    """Of 0.9 MB, and different each time."""
    return "".join(f"2026-11-15T04:27:09Z INFO {turn} worker {n % 99} finished job {n * 7919}\n" for n in range(15_000))


class Trace:
    """The functions of Overspill that are entered while it is on, in this thread and in those started after it was made. A
    lambda or a comprehension counts as part of the function it is in."""

    def __init__(self) -> None:
        self.entered: set[CodeType] = set()
        self._is_on = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    async def run(self, work: Callable[[], Awaitable[object]]) -> set[CodeType]:
        self.entered, self._is_on = set(), True
        await work()
        self._is_on = False
        return self.entered

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if self._is_on and event == "call" and code.co_filename.startswith(_SOURCE) and not code.co_name.startswith("<"):
            self.entered.add(code)


async def measure(is_listed: bool) -> None:
    turn = 0
    trace = Trace()

    async def small(q: str) -> str:
        return SMALL

    async def large(q: str) -> str:
        nonlocal turn
        turn += 1
        return log_text(turn)

    with tempfile.TemporaryDirectory() as folder:
        async with Session(Settings(storeDir=folder)) as session:
            kept = (await session.call("large", {"q": "a"}, large)).kept
            assert kept is not None
            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "small": lambda: session.call("small", {"q": "a"}, small),
                "stored": lambda: session.call("large", {"q": "a"}, large),
                "slice": lambda: session.invoke("get_tool_output", {"id": kept.name, "mode": "slice"}),
                "grep": lambda: session.invoke("get_tool_output", {"id": kept.name, "mode": "grep", "pattern": "job 7919"}),
            }
            for name, work in ways.items():
                await work()
                entered = await trace.run(work)
                files = {code.co_filename for code in entered}
                most = f"   (at most {LIMITS[name][0]} and {LIMITS[name][1] or 'any'})" if name in LIMITS else ""
                print(f"{name:8} {len(files):4} files {len(entered):4} functions{most}")
                if is_listed:
                    for code in sorted(entered, key=lambda code: (code.co_filename, code.co_firstlineno)):
                        print(f"         {code.co_filename.removeprefix(_SOURCE)[1:]}:{code.co_firstlineno} {code.co_qualname}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name them")
    given = parser.parse_args()
    logging.getLogger("overspill").setLevel(logging.ERROR)
    anyio.run(measure, given.list)


if __name__ == "__main__":
    main()
