"""The sets by name, each with its own sources."""

from __future__ import annotations

from benchmarks.questions.sets.first import FIRST
from benchmarks.questions.sets.second import SECOND
from benchmarks.questions.sets.third import THIRD

SETS = {chosen.name: chosen for chosen in (FIRST, SECOND, THIRD)}
