"""Overspill installs beside other frameworks, and works with the oldest packages it allows."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UV = shutil.which("uv")
TIMEOUT = 600
QUICK = (
    "unit/cli/test_cli_artifacts.py",
    "unit/cli/test_cli_output.py",
    "unit/reading/test_query.py",
    "unit/reading/test_read_grep.py",
    "unit/mcp/test_server_config.py",
    "unit/settings/test_settings_files.py",
    "unit/lexical/test_lexical_select.py",
    "flows/test_proxy_starts_servers_early.py",
)
"""At least one for every package that Overspill needs, with its extras `agent` and `mcp`."""
PYTEST_SETTINGS = """
[pytest]
markers =
    slow
    live
    promise
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(UV is None, reason="needs uv")]


def run_uv(*arguments: str, stdin: str = "") -> None:
    done = subprocess.run([str(UV), *arguments], input=stdin, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("framework", "extra"),
    [
        ("strands-agents>=1.62", "[mcp]"),
        ("litellm>=1.106", "[mcp]"),
        ("litellm[proxy]>=1.106", "[mcp]"),
        # These two need mcp 1, whose modules are others, so there is no `mcp` extra beside them: run the proxy on its own.
        ("crewai>=1.15", ""),
        ("langchain-mcp-adapters>=0.3.2", ""),
    ],
)
def test_overspill_installs_beside(framework: str, extra: str, tmp_path: Path):
    wanted = f"{framework}\noverspill{extra} @ {ROOT.as_uri()}\n"
    run_uv("pip", "compile", "--quiet", "--python-version", "3.11", "-", "-o", str(tmp_path / "resolved.txt"), stdin=wanted)
    assert "overspill @" in (tmp_path / "resolved.txt").read_text()


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the oldest packages that Overspill allows."""
    venv = tmp_path_factory.mktemp("oldest") / "venv"
    python = venv / "bin" / "python"
    run_uv("venv", "--quiet", "--no-project", "--python", sys.executable, str(venv))
    install = ("pip", "install", "--quiet", "--compile-bytecode", "--python", str(python))
    run_uv(*install, "--resolution", "lowest-direct", f"{ROOT}[agent,mcp]")
    run_uv(*install, "pytest", "hypothesis", "trio")
    return python


@pytest.mark.parametrize("name", QUICK)
def test_the_oldest_packages_that_are_allowed_will_do(oldest: Path, name: str, tmp_path: Path):
    settings = tmp_path / "pytest.ini"
    settings.write_text(PYTEST_SETTINGS)
    command = [str(oldest), "-m", "pytest", "-q", "-c", str(settings), "-p", "no:cacheprovider", "-m", "not live"]
    command += ["--rootdir", str(ROOT), str(ROOT / "tests" / name)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_every_requirement_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for name, needed in project["optional-dependencies"].items() if name != "all" for each in needed]
    assert [each for each in [*project["dependencies"], *extras] if ">=" not in each] == []
