"""Functions for the example agents. Each becomes a tool: its name, its docstring and its parameters are what the model sees."""

from __future__ import annotations


def deployment_log(lines: int = 4000) -> str:
    """The log of the last deployment."""
    steps = ("pulled image web:4.2.1", "health check passed", "drained one connection", "copied 14 assets")
    log = [f"2026-11-15T08:{n // 60 % 60:02}:{n % 60:02}Z INFO  {steps[n % 4]}" for n in range(lines)]
    log[lines * 2 // 3] = "2026-11-15T08:44:26Z ERROR migration 0042 failed: could not extend file: No space left on device"
    log[lines * 2 // 3 + 1] = "2026-11-15T08:44:27Z FATAL deployment rolled back"
    return "\n".join(log) + "\n"
