"""The databases of the sixth set, whose sources no other set uses."""

from __future__ import annotations

from benchmarks.questions.material import QuestionSet
from benchmarks.questions.sets.sixth.databases import DATABASES

SIXTH = QuestionSet(
    "sixth", "document", code_licences={}, pages={}, databases=DATABASES, listings={}, manuals={}, threads={}, least=80
)
