"""The sets by name, each with its own sources."""

from __future__ import annotations

from benchmarks.questions.sets.archives import ARCHIVES
from benchmarks.questions.sets.databases import DATABASES_ALONE
from benchmarks.questions.sets.drafts import DRAFTS
from benchmarks.questions.sets.languages import LANGUAGES
from benchmarks.questions.sets.popular import POPULAR
from benchmarks.questions.sets.standards import STANDARDS

SETS = {chosen.name: chosen for chosen in (POPULAR, DRAFTS, STANDARDS, LANGUAGES, ARCHIVES, DATABASES_ALONE)}
