"""A hub that has served many conversations holds no more than one that has served a few."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_days import DayLoop, live, measure
from hubs import HubHome, hub_home

HEAP_BYTES = 64 << 20  # what glibc reserves for the heap of another thread
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubHome]:
    monkeypatch.delenv("XDG_STATE_HOME")  # a hub in this process leaves nothing where other tests look
    with hub_home() as found:
        for name in ("HOME", "XDG_RUNTIME_DIR", "TMPDIR"):
            monkeypatch.setenv(name, found.env[name])
        yield found


@pytest.fixture
def anyio_backend():
    return "asyncio", {"loop_factory": DayLoop}


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_day_of_conversations_leaves_only_what_the_store_has_kept(home: HubHome):
    early, late = [measure() async for number in live(home.env, 24) if number in (3, 23)]
    more = {name: count for name, count in (late.objects - early.objects).items() if count > 5}
    assert more.keys() == {"overspill.store.files.survey.FoundSession"}
    assert late.blocks - early.blocks < 20 * 200  # a conversation that is still held has thousands
    assert late.files == early.files


@pytest.mark.anyio
async def test_a_client_works_on_after_each_night_in_which_the_machine_sleeps(home: HubHome):
    assert [number async for number in live(home.env, 3)] == [0, 1, 2]  # eight hours each


def count_heaps(pid: int) -> int:
    """Count the heaps of other threads: memory in use that is followed by the rest of what is reserved for it."""
    lines = re.findall(r"^(\w+)-(\w+) (rw-p|---p) \w+ 00:00 0 *$", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
    found = [(int(start, 16), int(end, 16), mode) for start, end, mode in lines]
    pairs = list(itertools.pairwise(found))
    return sum(a[2] != b[2] == "---p" and a[1] == b[0] and b[1] - a[0] == HEAP_BYTES for a, b in pairs)


def test_the_threads_of_a_hub_share_one_heap(home: HubHome):
    with home.front() as client:
        client.hello()
        for _ in range(3):
            client.text("lines", {"count": 5000})
        assert count_heaps(home.pid()) == 0
