"""How much each thing counts when records are ranked. Sizes and other limits are defined where they are used.

Halving or doubling most of these changes few answers; `benchmarks/engine/recall.py` shows which.
"""

from __future__ import annotations

import math

from msgspec import Struct


class Weights(Struct, frozen=True):
    # What a word of the question counts.
    quoted: float = 1.6
    """A word in quotation marks, which was spelled with care."""
    identifier: float = 2.0
    """A number or a name with signs in it, which has only one meaning."""
    part_of_identifier: float = 0.3
    """A word in such a name. It helps only where the name is spelt differently."""
    wording: float = 0.35
    """A word of the request ("show", "list"), which the answer need not have."""
    synonym: float = 0.35
    """A near synonym of a word in the question."""
    other_word: float = 0.7
    """A word in parentheses in the question, in case the text uses it instead."""
    example: float = 0.2
    """A word of the code or stack trace that a question quotes, which has many."""

    # What a record scores.
    saturation: float = 1.2
    """BM25's k1: how slowly further occurrences in a record stop counting."""
    length: float = 0.5
    """BM25's b, below the usual 0.75: records of one kind differ in length for reasons other than their subject."""
    label: float = 0.8
    """A word in a heading, key or column above the record, which is about everything below it."""
    label_and_record: float = 0.3
    """The same, if the record also has the word."""
    phrase: float = 0.5
    """Two words that follow each other as in the question, in addition to their separate weights."""
    beside_block: float = 0.5
    """A word in the next block of a large text, which may be in the same record."""

    # What is around a record.
    definition: float = 2.0
    """A name where it is defined, in addition to its usual weight: the question is about what it does."""

    # Records that other records lead to, as a share of the score of the latter.
    fitting_fact: float = 0.6
    """A label with its value on a page, if the value has the requested type: a number or a time."""
    fact_in_other_words: float = 0.5
    """A label with its value, if a word of the question is nowhere on the page."""
    fitting_fact_in_other_words: float = 0.9
    """The same, with a value of the requested type."""
    lead: float = 0.95
    """Rows that the question leads to through others, as a share of the best score: just after the row that it names."""
    answering_row: float = 1.2
    """Rows that answer the question, as a share of the best score: before everything else."""
    row_step: float = 0.01
    """How much lower each of these records scores than the one before it, to keep their order."""
    least: float = 0.05
    """A record below this share of the best score has only a common word of the question."""
    tiers: int = 10
    """Records of a list are shown in document order if their scores differ by less than one part in this many."""

    # Rows.
    filtered: float = 0.85
    """Rows of a list belong to the answer if they mention at least this share of what the best row mentions."""
    condition: float = 0.6
    """Rows meet the condition of a question about order if they have at least this share of the best row's words."""

    # Failures.
    failure_terms: float = 0.3
    """The words of a question about a failure, relative to signs of its cause. They name what failed, not why."""
    strong_word: float = 2.0
    """fatal, panic, error: programs say this when they fail. Other words, such as missing or denied, also occur in passing."""

    # How much the structure of the text adds to confidence.
    evidence_of_failure: float = 0.75
    """A program says that it gave up, or begins a message of failure."""
    evidence_of_value: float = 0.7
    """Rows that were compared by a column, or that lack an excluded value that many rows have."""
    evidence_of_place: float = 0.4
    """Rows chosen by their place in the table, whose order may mean nothing."""


WEIGHTS = Weights()


def idf(total: int, holding: int) -> float:
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))
