"""The sources of the fifth set, none of which the other four use."""

from __future__ import annotations

from benchmarks.questions.material import QuestionSet
from benchmarks.questions.sets.fifth.code import LICENCES
from benchmarks.questions.sets.fifth.databases import DATABASES
from benchmarks.questions.sets.fifth.listings import LISTINGS
from benchmarks.questions.sets.fifth.manuals import MANUALS
from benchmarks.questions.sets.fifth.pages import PAGES
from benchmarks.questions.sets.fifth.threads import THREADS

FIFTH = QuestionSet("fifth", "document", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS, least=24)
