"""`overspill python`: a program over files and stored outputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Place
from extras import needs

pytestmark = needs("pydantic_monty", "programs")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    made = Place(tmp_path, monkeypatch, capsys)
    Path("orders.csv").write_text("id,total\n1,5\n2,7\n3,9\n")
    return made


def test_code_and_files_of_code_run_over_files(place: Place) -> None:
    code = "print(sum(o['total'] for o in load('orders.csv')))"
    Path("sum.py").write_text(code)
    assert place.overspill("python", code, "orders.csv") == (0, "21\n", "")
    assert place.overspill("python", "sum.py", "orders.csv") == (0, "21\n", "")


def test_a_stored_output_is_called_by_its_name(place: Place) -> None:
    (kept,) = place.keep(report="one\ntwo\n")
    assert place.overspill("python", f"load('{kept.name}')", kept.name).out == '["one", "two"]\n'


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("1 / 0",), "The program failed at line 1: ZeroDivisionError: division by zero"),
        (("missing.py",), "missing.py cannot be read: No such file or directory."),
        (("1", "missing.csv"), "missing.csv is neither a file nor the name of a stored output."),
        (("load('secret.txt')", "orders.csv"), "'secret.txt' is not a handle."),
        (("open('orders.csv').read()", "orders.csv"), "PermissionError"),
        (("while True: pass", "--timeout", "0.5"), "was stopped at its time limit of 0.5 s"),
        (("while True: pass", "--set", "programTimeoutSecs=0.5"), "was stopped at its time limit of 0.5 s"),
    ],
)
def test_what_cannot_run_is_one_clear_error(place: Place, args: tuple[str, ...], said: str) -> None:
    code, out, err = place.overspill("python", *args)
    assert (code, out) == (2 if "missing" in said else 1, "")
    assert said in err
    assert "Traceback" not in err
