"""Archives of forums, health records, a genealogy, exports, manuals of devices. No other set has these sources."""

from __future__ import annotations

from benchmarks.questions.material import QuestionSet
from benchmarks.questions.sets.archives.code import LICENCES
from benchmarks.questions.sets.archives.databases import DATABASES
from benchmarks.questions.sets.archives.listings import LISTINGS
from benchmarks.questions.sets.archives.manuals import MANUALS
from benchmarks.questions.sets.archives.pages import PAGES
from benchmarks.questions.sets.archives.threads import THREADS

ARCHIVES = QuestionSet("archives", "document", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS, least=24)
