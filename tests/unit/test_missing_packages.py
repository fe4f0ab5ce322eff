"""What a missing package says: the command that installs it where Overspill runs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from overspill.errors import MissingPackage

SOURCE = Path(__file__).parents[2] / "src" / "overspill"
SAY = "from overspill.errors import MissingPackage; print(MissingPackage('SQL', 'sql'))"


def test_in_a_clone_the_clone_is_installed():
    assert str(MissingPackage("SQL", "sql")).endswith(" In a clone of Overspill: `pip install '.[sql]'`.")


@pytest.mark.parametrize("has_pip", [True, False])
def test_beside_other_packages_the_extra_is_installed_there(tmp_path: Path, has_pip: bool):
    """As a wheel puts it, with pip, or in an environment of uv, which has none."""
    packages = tmp_path / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "overspill").symlink_to(SOURCE)
    (packages / "pip.py").touch()
    hide = "" if has_pip else "import sys; sys.modules['pip'] = None; "
    command = [sys.executable, "-c", hide + SAY]
    said = subprocess.run(command, env={"PYTHONPATH": str(packages)}, capture_output=True, text=True, timeout=60, check=True)
    python = shlex.quote(sys.executable)
    install = f"{python} -m pip install 'overspill[sql]'" if has_pip else f"uv pip install 'overspill[sql]' --python {python}"
    assert said.stdout == f"SQL needs the package duckdb, which is not installed or too old. To install it: `{install}`.\n"
