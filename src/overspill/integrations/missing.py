"""The error about a framework that is not installed."""

from __future__ import annotations


class MissingFramework(ImportError):
    """`needs`: what to install, as `pip` takes it."""

    def __init__(self, adapter: str, needs: str) -> None:
        super().__init__(f"overspill.integrations.{adapter} needs the package {needs}. Install it: `pip install '{needs}'`.")
