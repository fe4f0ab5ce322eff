"""The sets by name, each with its own sources."""

from __future__ import annotations

from benchmarks.questions.sets.first import FIRST
from benchmarks.questions.sets.second import SECOND

SETS = {chosen.name: chosen for chosen in (FIRST, SECOND)}
