"""JSON Schemas from other authors: checked in a process that cannot open anything and ends in time."""

from overspill.schema.check import Misfit, Unchecked, find_flaw, find_misfit, fits_schema

__all__ = ["Misfit", "Unchecked", "find_flaw", "find_misfit", "fits_schema"]
