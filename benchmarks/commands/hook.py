"""What `overspill hook` costs an agent for each small output, beside `python -c 'import msgspec'`: processor time, in one run."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 40
EVENT = json.dumps(
    {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "git status"},
        "tool_response": {"stdout": "x" * 8_000, "stderr": "", "interrupted": False},
    }
).encode()


def measure(command: list[str], home: str) -> float:
    """Seconds of processor time of one run."""
    env = {"PATH": os.environ["PATH"], "HOME": home}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=EVENT, env=env, cwd=home, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    hook = [str(Path(sys.executable).with_name("overspill")), "hook", "claude-code"]
    plain = [sys.executable, "-c", "import msgspec"]
    with tempfile.TemporaryDirectory() as home:
        for command in (hook, plain):
            measure(command, home)  # writes the bytecode
        pairs = [(measure(hook, home), measure(plain, home)) for _ in range(RUNS)]
    ours, theirs = (sorted(times) for times in zip(*pairs, strict=True))
    at = int(RUNS * 0.95) - 1
    print(f"median: {statistics.median(ours) / statistics.median(theirs):.2f} x, p95: {ours[at] / theirs[at]:.2f} x")


if __name__ == "__main__":
    main()
