"""The suite passes with every framework, each in its own environment. What could not run is listed at the end of the test run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integrations.abilities import CANNOT

ROOT = Path(__file__).parents[2]
NO_ENVIRONMENT = 75  # what scripts/framework ends with where packages cannot be installed


def test_every_framework_has_an_adapter_a_driver_and_a_pinned_environment():
    here = Path(__file__).parent
    for framework in CANNOT:
        for path in (f"drivers/{framework}.py", f"environments/{framework}.in", f"environments/{framework}.lock"):
            assert (here / path).is_file()
        assert (ROOT / f"src/overspill/integrations/{framework}.py").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("framework", CANNOT)
def test_the_suite_passes(framework: str):
    run = subprocess.run([ROOT / "scripts/framework", framework], capture_output=True, text=True, timeout=1_800, check=False)
    if run.returncode == NO_ENVIRONMENT:
        pytest.skip(f"{framework} could not be installed: {run.stderr.strip()[-500:]}")
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
