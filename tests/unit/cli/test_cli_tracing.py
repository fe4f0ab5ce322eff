"""Commands make spans if the program that starts them has loaded the SDK of OpenTelemetry, and import none of it otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import RUN, SOURCE

EXAMPLES = Path(__file__).parents[3] / "examples"
# As `opentelemetry-instrument` does, with spans that are printed at the end.
TRACED = """
import atexit, json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
list_spans = lambda: [[span.name, dict(span.attributes)] for span in kept.get_finished_spans()]
atexit.register(lambda: print(json.dumps(list_spans()), file=sys.stderr))
"""
LOADED = "import atexit, sys\natexit.register(lambda: print('opentelemetry' in sys.modules, file=sys.stderr))\n"


def run_agent(tmp_path: Path, before: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(SOURCE),
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path),
    }
    line = ["run", str(EXAMPLES / "scripted.ai"), "Why?", "--config", str(EXAMPLES / "config.yaml"), "-q"]
    command = [sys.executable, "-c", before + RUN, *line]
    return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.slow
def test_an_agents_tools_and_models_are_spans_without_content(tmp_path: Path):
    done = run_agent(tmp_path, TRACED)
    spans = json.loads(done.stderr.splitlines()[-1])
    names = [name for name, _ in spans]
    assert "execute_tool deployment_log" in names
    assert any(name.startswith("chat ") for name in names)
    assert "No space left" in done.stdout
    assert "No space left" not in json.dumps(spans)


@pytest.mark.slow
def test_without_the_sdk_nothing_of_it_is_imported(tmp_path: Path):
    done = run_agent(tmp_path, LOADED)
    assert done.stderr.splitlines()[-1] == "False"
