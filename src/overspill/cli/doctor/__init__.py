"""Looks at everything that has to be right for Overspill to work, and says in plain words what is not."""

from overspill.cli.doctor.findings import Finding, Level

__all__ = ["Finding", "Level"]
