"""Run the slow tools of sessions, on any number of machines: the worker's side of a task engine."""

from overspill.worker.tools import WorkerTools

__all__ = ["WorkerTools"]
