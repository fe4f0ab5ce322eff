"""JSON Schemas that others wrote: checked in a process that can open nothing and that ends in time."""

from overspill.schema.check import Misfit, Unchecked, find_flaw, find_misfit, fits_schema

__all__ = ["Misfit", "Unchecked", "find_flaw", "find_misfit", "fits_schema"]
