"""How many of our files and functions a call passes through. Most calls are small, so each step is paid for again and again."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import overspill
from overspill import Session, Settings

ROOT = str(Path(overspill.__file__).parent)


class Trace:
    """The functions of ours that were entered, once for each time, in all threads that started after it."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, str]] = []
        self._is_on = False

    def __enter__(self) -> "Trace":
        threading.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        threading.setprofile(None)

    async def follow(self, call: Callable[[], Any]) -> None:
        self._is_on = True
        sys.setprofile(self._note)
        try:
            await call()
        finally:
            sys.setprofile(None)
            self._is_on = False

    @property
    def files(self) -> list[str]:
        return sorted({file for file, _ in self.entered})

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if self._is_on and event == "call" and frame.f_code.co_filename.startswith(ROOT):
            self.entered.append((frame.f_code.co_filename.removeprefix(ROOT), frame.f_code.co_name))


async def follow_a_call(text: Callable[[int], str], tmp_path: Path, **settings: Any) -> Trace:
    """The fourth of a session, so that nothing is done for the first time."""
    made = iter(range(4))

    async def tool(q: str) -> str:
        return text(next(made))

    with Trace() as trace:
        async with Session(Settings(storeDir=str(tmp_path), **settings)) as session:
            for _ in range(3):
                await session.call("t", {"q": "a"}, tool)
            await trace.follow(lambda: session.call("t", {"q": "a"}, tool))
    return trace


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_small_result_passes_through_few_files_and_functions(tmp_path: Path) -> None:
    trace = await follow_a_call(lambda _: "x" * 2048, tmp_path)

    assert len(trace.files) <= 20, trace.files
    assert len(trace.entered) <= 55, trace.entered


@pytest.mark.anyio
async def test_a_large_result_is_stored_through_few_files_besides_those_of_its_card(tmp_path: Path) -> None:
    line = "{} worker {} finished job {} in {} ms\n"
    trace = await follow_a_call(
        lambda turn: "".join(line.format(turn, n * 7919 % 99, n * 104729 % 1000, n % 35) for n in range(25_000)),
        tmp_path,
        previewTokens=0,
    )

    assert len(trace.files) <= 45, trace.files
