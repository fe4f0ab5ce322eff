"""The engine's indexes of a session: built once, and bounded together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from overspill.lexical.index import Work
from overspill.lexical.select import select
from overspill.retrieval.views import EngineIndexes
from overspill.store.readers import BytesReader


class CountingReader(BytesReader):
    """Counts how often an index is built from it."""

    builds = 0

    def buffer(self) -> memoryview:
        self.builds += 1
        return super().buffer()


def text(letter: str, size: int = 10_000) -> CountingReader:
    return CountingReader((f"{letter} line of a log\n" * size)[:size].encode())


def test_an_index_is_built_once_however_many_ask_for_it():
    indexes, reader, barrier = EngineIndexes(), text("a", 1_000_000), Barrier(8)

    def ask() -> int:
        barrier.wait(timeout=30)
        return id(indexes.get("a", reader))

    with ThreadPoolExecutor(8) as threads:
        found = {task.result(timeout=60) for task in [threads.submit(ask) for _ in range(8)]}
    assert (reader.builds, len(found)) == (1, 1)


def test_indexes_are_dropped_by_their_bytes_together_the_oldest_first():
    readers = {letter: text(letter) for letter in "abc"}
    weight = EngineIndexes().get("a", text("a")).memory_bytes
    indexes = EngineIndexes(2 * weight)
    for letter in "abac":  # `a` was used after `b`
        indexes.get(letter, readers[letter])
    for letter in "ac":
        indexes.get(letter, readers[letter])
    assert [reader.builds for reader in readers.values()] == [1, 1, 1]
    indexes.get("b", readers["b"])
    assert readers["b"].builds == 2


def test_many_small_indexes_are_kept():
    readers = {str(number): text("a", 1000) for number in range(50)}
    indexes = EngineIndexes()
    for _ in range(2):
        for name, reader in readers.items():
            indexes.get(name, reader)
    assert {reader.builds for reader in readers.values()} == {1}


def test_one_index_takes_no_more_than_all_may_take_together():
    indexes = EngineIndexes(max_bytes=1000)
    index = indexes.get("a", text("a"))
    assert index.memory_bytes <= 1000
    assert index.total_bytes == 10_000


def test_with_limited_work_only_the_beginning_of_a_larger_output_is_read():
    indexes, reader = EngineIndexes(), text("a")
    beginning = indexes.get("a", reader, Work(4_000, 1_000))
    assert (beginning.total_bytes, reader.builds) == (4_000, 0)
    assert indexes.get("a", reader, Work(4_000, 1_000)) is beginning
    whole = indexes.get("a", reader)
    assert whole.total_bytes == 10_000
    assert indexes.get("a", reader, Work(10_000, 1_000)) is whole


def test_what_an_index_remembers_for_further_questions_counts():
    rows = ", ".join(f'{{"id": {number}, "user": "user {number % 97}", "amount": {number}}}' for number in range(3_000))
    reader = BytesReader(f'{{"orders": [{rows}]}}'.encode())
    index = EngineIndexes().get("a", reader)
    before = index.memory_bytes
    select(index, "which user has the largest amount")
    assert index.memory_bytes > before + 500_000
    bounded = EngineIndexes(before + 100_000).get("a", reader)
    for _ in range(2):
        answer = select(bounded, "which user has the largest amount")
        assert "2999" in answer.text
    bounded.focus((), compares_rows=False)
    assert bounded.memory_bytes <= before + 100_000
