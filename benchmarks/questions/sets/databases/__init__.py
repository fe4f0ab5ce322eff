"""Thirteen databases that no other set has: a library, a clinic, a parliament, a power grid, a shop and others."""

from __future__ import annotations

from benchmarks.questions.material import QuestionSet
from benchmarks.questions.sets.databases.databases import DATABASES

DATABASES_ALONE = QuestionSet(
    "databases", "document", code_licences={}, pages={}, databases=DATABASES, listings={}, manuals={}, threads={}, least=80
)
