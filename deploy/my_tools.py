"""Slow tools that `overspill worker` runs. Put your own here."""

from __future__ import annotations

import time

from overspill.worker import WorkerTools

tools = WorkerTools()


@tools.register(repeatable=True, max_running=4)
def count_slowly(to: int) -> str:
    lines: list[str] = []
    for number in range(to):
        time.sleep(0.1)
        lines.append(f"{number}\n")
    return "".join(lines)
