"""The table of benchmarks names every script that can be run, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_every_benchmark_is_in_the_table():
    named = set(re.findall(r"benchmarks/(\w+/\w+\.py)", (BENCHMARKS / "README.md").read_text("utf-8")))
    scripts = {
        str(path.relative_to(BENCHMARKS))
        for path in BENCHMARKS.glob("*/*.py")
        if '__name__ == "__main__"' in path.read_text("utf-8") and path.name != "__main__.py"
    }
    assert named == scripts
