from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill import handles
from overspill.errors import StoreFull
from overspill.store.files.store import FileStore
from overspill.store.keep import KeptItem, expired_items
from overspill.store.memory import MemoryStore
from overspill.store.protocols import KeepLimits, Store

backends = pytest.mark.parametrize("backend", ["memory", "files"])
pieces = st.lists(st.binary(max_size=200), max_size=20)


@contextmanager
def opened(backend: str, run_bytes: int = 1 << 30) -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as root:
        store = MemoryStore(run_bytes=run_bytes) if backend == "memory" else FileStore(Path(root), run_bytes=run_bytes)
        yield store
        store.close()


@backends
@given(appended=pieces)
def test_any_sequence_of_appends_reads_back_identical(backend, appended):
    with opened(backend) as store:
        shelf = store.open_shelf(handles.new())
        writer = shelf.create(id := handles.new())
        for count, piece in enumerate(appended, 1):
            writer.append(piece)
            assert shelf.open(id).read(0, 1 << 20) == b"".join(appended[:count])
        writer.commit()
        assert bytes(shelf.open(id).buffer()) == b"".join(appended)


@backends
@given(data=st.binary(max_size=300), ranges=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=10))
def test_a_ranged_read_equals_the_slice(backend, data, ranges):
    with opened(backend) as store:
        shelf = store.open_shelf(handles.new())
        writer = shelf.create(id := handles.new())
        writer.append(data)
        writer.commit()
        reader = shelf.open(id)
        for start, end in ranges:
            assert reader.read(start, end) == data[start:end]


@backends
@given(appended=pieces, quota=st.integers(0, 500))
def test_a_quota_keeps_exactly_the_first_bytes(backend, appended, quota):
    with opened(backend, run_bytes=quota) as store:
        shelf = store.open_shelf(handles.new())
        writer = shelf.create(id := handles.new())
        refused = False
        for piece in appended:
            try:
                writer.append(piece)
            except StoreFull:
                refused = True
        writer.commit()
        whole = b"".join(appended)
        assert shelf.open(id).read(0, 1 << 20) == whole[:quota]
        assert refused == (len(whole) > quota)
        store.empty_shelf(shelf.session)
        assert store.free() == quota


@backends
@given(lines=st.lists(st.binary(max_size=50).map(lambda line: line.replace(b"\n", b" ") + b"\n"), max_size=10))
def test_a_journal_gives_back_its_lines(backend, lines):
    with opened(backend) as store:
        shelf = store.open_shelf(handles.new())
        for line in lines:
            shelf.append_journal(line)
        assert list(shelf.journal())[1:] == lines


@given(
    st.lists(st.builds(KeptItem, session=st.uuids().map(str), id=st.just(""), used=st.floats(0, 1e6), bytes=st.integers(0, 99))),
    st.floats(0, 12),
    st.integers(0, 500),
)
def test_keep_limits_hold_afterwards_and_spare_what_was_used_today(items, days, limit):
    doomed = expired_items(items, {"": sum(item.bytes for item in items)}, KeepLimits(days, limit), now=1e6)
    left = [item for item in items if item not in doomed]
    assert all(1e6 - item.used <= days * 86_400 for item in left)
    assert all(1e6 - item.used > min(days, 1) * 86_400 for item in doomed)
    assert sum(item.bytes for item in left) <= limit or all(1e6 - item.used <= 86_400 for item in left)
