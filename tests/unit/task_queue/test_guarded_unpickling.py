"""pydocket unpickles what it reads. On Overspill's queues it reads plain data and runs nothing."""

import os
from pathlib import Path
from typing import Any

import pytest
from store_servers import require_package

require_package("docket")

import cloudpickle  # noqa: E402
from docket import execution, strikelist  # noqa: E402

from overspill.task_queue.pickles import RefusedData, guard_unpickling  # noqa: E402


class Hostile:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("module", [execution, strikelist])
def test_a_hostile_message_is_refused_and_runs_nothing(module: Any, tmp_path: Path):
    data = cloudpickle.dumps(((Hostile(tmp_path / "owned"),), {}))
    with guard_unpickling():
        refused = module.cloudpickle.loads(data)
    assert isinstance(refused, RefusedData)
    assert not (tmp_path / "owned").exists()
    module.cloudpickle.loads(data)  # outside, as before: other queues of the program are not ours
    assert (tmp_path / "owned").exists()


@pytest.mark.parametrize("data", [b"", b"\x80", b"junk", b"\x80\x05P0\n.", b"cos\nsystem\n(S'true'\ntR."])
def test_broken_data_is_refused_too(data: bytes):
    with guard_unpickling():
        assert isinstance(execution.cloudpickle.loads(data), RefusedData)


def test_plain_data_is_read():
    with guard_unpickling():
        assert execution.cloudpickle.loads(cloudpickle.dumps(("payload", 1, {"a": [None]}))) == ("payload", 1, {"a": [None]})


def test_refused_data_stands_for_no_arguments():
    def take(*args: object, **named: object) -> tuple[object, object]:
        return args, named

    refused = RefusedData()
    assert take(*refused, **refused) == ((), {})
    assert refused[:3] == ()
