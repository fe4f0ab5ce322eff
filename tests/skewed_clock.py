"""The beginning of a program whose machine has another time."""

from __future__ import annotations


def skew_clock(seconds: int) -> str:
    return f"""
import time
_time, _time_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: _time() + {seconds}, lambda: _time_ns() + {seconds} * 10**9
"""
