"""Checks everything that Overspill needs in order to work."""

from overspill.cli.commands.doctor.findings import Finding, Level

__all__ = ["Finding", "Level"]
