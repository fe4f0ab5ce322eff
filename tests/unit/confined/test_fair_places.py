"""Places that several owners want: everyone has its turn."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from waiting import wait_until

from overspill.confined.worker import FairPlaces, Processes, Worker

AT_ONCE = 0.0


def far() -> float:
    return time.monotonic() + 60


@contextmanager
def waiting_in_turn(places: FairPlaces, owners: list[str], served: list[str]) -> Iterator[None]:
    """Each takes a place when it is its turn, and gives it back."""

    def take_and_return(owner: str) -> None:
        assert places.take(owner, far())
        served.append(owner)
        places.give_back(owner)

    with ThreadPoolExecutor(len(owners)) as pool:
        taken = []
        for count, owner in enumerate(owners, 1):
            taken.append(pool.submit(take_and_return, owner))
            wait_until(lambda count=count: sum(places.waiting.values()) == count)
        yield
        for each in taken:
            each.result()


def test_who_waits_for_many_places_does_not_keep_others_from_their_turn():
    places, served = FairPlaces(1, 1), list[str]()
    assert places.take("many", far())
    with waiting_in_turn(places, [*["many"] * 5, "few", "other"], served):
        places.give_back("many")
    assert set(served[:2]) == {"few", "other"}
    assert served.count("many") == 5


def test_nobody_takes_more_places_than_it_may():
    places = FairPlaces(2, 1)
    assert places.take("many", far())
    assert not places.take("many", AT_ONCE)
    assert places.take("few", AT_ONCE)
    places.give_back("many")
    assert places.take("many", AT_ONCE)


def test_places_that_were_given_back_are_there_again():
    places = FairPlaces(2, 2)
    for _ in range(3):
        assert places.take("a", AT_ONCE)
        assert places.take("a", AT_ONCE)
        assert not places.take("b", AT_ONCE)
        places.give_back("a")
        places.give_back("a")


def test_a_piece_of_work_runs_while_another_owner_has_all_its_places(tmp_path: Path):
    script = tmp_path / "worker.py"
    script.write_text(
        "import sys\nsys.stdout.write('began')\nsys.stdout.flush()\nsys.stdin.read() == 'long' and __import__('time').sleep(60)\n"
    )
    worker = Worker(script, max_running=2, max_seconds=60, max_each=1)
    many, few = Processes(), Processes()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(worker.run, b"long", 60, many)
        try:
            assert worker.run(b"short", 60, few).is_complete
        finally:
            many.end()
