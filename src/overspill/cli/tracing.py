"""Traces of commands that call tools."""

from __future__ import annotations

import sys

from overspill.record.observers import Observer


def find_observers() -> tuple[Observer, ...]:
    """OpenTelemetry, if its SDK was loaded before us, as by `opentelemetry-instrument overspill proxy …`. Else nothing."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return ()
    from overspill.record.otel import OpenTelemetry

    return (OpenTelemetry(),)
