"""The suite passes with every framework, each in its own environment. What could not run is listed at the end of the test run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from locks import find_gaps, read_asked, read_installed, read_lock

from tests.integrations.abilities import CANNOT, list_behaviours

ROOT = Path(__file__).parents[2]
NO_ENVIRONMENT = 75  # what scripts/framework ends with where packages cannot be installed


def test_every_framework_has_an_adapter_a_driver_and_a_pinned_environment():
    here = Path(__file__).parent
    for framework in CANNOT:
        for path in (f"drivers/{framework}.py", f"environments/{framework}.in", f"environments/{framework}.lock"):
            assert (here / path).is_file()
        assert (ROOT / f"src/overspill/integrations/{framework}.py").is_file()


def test_what_a_framework_cannot_do_is_a_behaviour_of_the_suite():
    assert {behaviour for cannot in CANNOT.values() for behaviour in cannot} <= set(list_behaviours())


@pytest.mark.slow
@pytest.mark.parametrize("framework", CANNOT)
def test_an_adapter_without_its_framework_says_what_is_missing(framework: str):
    tree = ast.parse((ROOT / f"src/overspill/integrations/{framework}.py").read_text("utf-8"))
    guarded = next((node for node in tree.body if isinstance(node, ast.Try)), None)
    if guarded is None:  # it imports nothing of the framework
        return
    modules = [str(node.module) for node in guarded.body if isinstance(node, ast.ImportFrom)]
    code = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); import overspill.integrations.{framework}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert f"overspill.integrations.{framework} needs the package" in run.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("framework", CANNOT)
def test_the_suite_passes(framework: str):
    run = subprocess.run([ROOT / "scripts/framework", framework], capture_output=True, text=True, timeout=1_800, check=False)
    if run.returncode == NO_ENVIRONMENT and "CI" not in os.environ:
        pytest.skip(f"{framework} could not be installed: {run.stderr.strip()[-500:]}")
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]


@pytest.mark.slow
@pytest.mark.parametrize("framework", CANNOT)
def test_the_lock_of_a_framework_has_all_that_its_packages_need(framework: str):
    command = [ROOT / "scripts/framework", "--python", framework]
    run = subprocess.run(command, capture_output=True, text=True, timeout=1_800, check=False)
    if run.returncode == NO_ENVIRONMENT:
        pytest.skip(f"{framework} could not be installed: {run.stderr.strip()[-500:]}")
    lock = f"tests/integrations/environments/{framework}.lock"
    (site,) = Path(run.stdout.strip()).parents[1].glob("lib/python3.*/site-packages")
    assert find_gaps(read_asked(lock), read_lock((ROOT / lock).read_text("utf-8")), read_installed(site)) == set()
