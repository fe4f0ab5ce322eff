"""The sets by name, each with its own sources."""

from __future__ import annotations

from benchmarks.questions.sets.fifth import FIFTH
from benchmarks.questions.sets.first import FIRST
from benchmarks.questions.sets.fourth import FOURTH
from benchmarks.questions.sets.second import SECOND
from benchmarks.questions.sets.sixth import SIXTH
from benchmarks.questions.sets.third import THIRD

SETS = {chosen.name: chosen for chosen in (FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH)}
