"""pydocket unpickles what it reads. On Overspill's queues it reads plain data and runs nothing."""

import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from store_servers import require_package

require_package("docket")

import cloudpickle  # noqa: E402
from docket import execution, strikelist  # noqa: E402

from overspill.task_queue.queue import guard_unpickling  # noqa: E402


class Hostile:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("module", [execution, strikelist])
def test_a_hostile_message_is_refused_and_runs_nothing(module: Any, tmp_path: Path):
    data = cloudpickle.dumps((Hostile(tmp_path / "owned"),))
    with guard_unpickling(), pytest.raises(pickle.UnpicklingError):
        module.cloudpickle.loads(data)
    assert not (tmp_path / "owned").exists()
    module.cloudpickle.loads(data)  # outside, as before: other queues of the program are not ours
    assert (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"junk", b"\x80\x05P0\n.", b"cos\nsystem\n(S'true'\ntR.", b"]" * 1_000_000, b")" + b"\x85" * 50 + b"."]
)
def test_broken_or_nested_data_is_refused_too(data: bytes):
    with guard_unpickling(), pytest.raises((pickle.UnpicklingError, ValueError)):
        execution.cloudpickle.loads(data)


@pytest.mark.parametrize("data", [b"Nr\x00\x00\x00\x04.", b"\x80\x04\x96" + b"\xff" * 7 + b"\x00."])
def test_a_short_pickle_takes_no_more_memory_than_it_is_long(data: bytes):
    with guard_unpickling():
        tracemalloc.start()
        try:
            with pytest.raises((pickle.UnpicklingError, ValueError)):
                execution.cloudpickle.loads(data)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("value", [("payload",), ("é" * 100_000,), {}, (), "text", 5, -1.5, None, True])
def test_single_values_are_read(value: object):
    with guard_unpickling():
        assert execution.cloudpickle.loads(cloudpickle.dumps(value)) == value
