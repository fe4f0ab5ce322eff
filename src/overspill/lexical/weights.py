"""What counts how much when records are ranked. Sizes and other limits are where they are used.

Halving or doubling most of these changes few answers; `benchmarks/engine/recall.py` shows which.
"""

from __future__ import annotations

import math

from msgspec import Struct


class Weights(Struct, frozen=True):
    # What a word of the question counts.
    quoted: float = 1.6
    """In quotation marks: somebody took care to spell it."""
    identifier: float = 2.0
    """A number or a name with signs in it: it means one thing only."""
    part_of_identifier: float = 0.3
    """A word in such a name: it helps only where the name itself is spelt differently."""
    wording: float = 0.35
    """A word that asks ("show", "list"): the answer need not have it."""
    synonym: float = 0.35
    """A word that means nearly the same as one of the question."""
    other_word: float = 0.7
    """A word that the question gives in parentheses, in case the text has it instead."""
    example: float = 0.2
    """A word of the code or the stack trace that a question quotes: it has many."""

    # How well a spelling in the text matches.
    resemblance: float = 0.5
    """Slightly shorter or longer than a word of the question: Asia, Asian."""
    attached: float = 0.7
    """An identifier with something attached to it, as 2.0 in ^2.0."""
    within_identifier: float = 0.4
    """Part of a longer number or name, as 1.2 in 1.2.3."""
    whole_cell: float = 3.0
    """A word that fills a cell, as often as it counts: a value, not a mention."""

    # What a record scores.
    saturation: float = 1.2
    """BM25's k1: how slowly further occurrences in a record stop counting."""
    length: float = 0.5
    """BM25's b, below the usual 0.75: records of one kind differ in length for reasons other than their subject."""
    label: float = 0.8
    """A word in a heading, key or column above the record: it is about everything below it."""
    label_and_record: float = 0.3
    """The same, if the record has the word too."""
    phrase: float = 0.5
    """Two words that follow each other as in the question, beside what they count alone."""
    beside_block: float = 0.5
    """A word in the next block of a large text: it may be in the same record."""
    beside_piece: float = 0.5
    """Words in the next piece of a record that is shortened: a sentence may extend into it."""

    # What is around a record.
    definition: float = 2.0
    """A name where it is defined, beside what it counts anywhere: the question is about what it does."""

    # Records that others lead to, as a share of the score of those.
    subject: float = 0.3
    """A word that is in the title of a page: all of the page is about it."""
    fitting_fact: float = 0.6
    """A label with its value on a page, of the best score, if the value is of the sort that is asked for: a number or a time."""
    fact_in_other_words: float = 0.5
    """A label with its value, if a word of the question is nowhere on the page."""
    fitting_fact_in_other_words: float = 0.9
    """The same, with a value of the sort that is asked for."""
    fact_about_subject: float = 1.2
    """A label with its value, if nothing but words of the page's title were found of the question."""
    lead: float = 0.95
    """Rows that the question leads to through others, as a share of the best score: just after the row that it names."""
    answering_row: float = 1.2
    """Rows that answer the question, as a share of the best score: before everything else."""
    row_step: float = 0.01
    """What each of these has less than the one before, so that their order stays."""
    least: float = 0.05
    """A record below this share of the best score only shares a common word with the question."""
    tiers: int = 10
    """Records of a list whose scores differ by less than one part in this many are shown in the order of the document."""

    # Rows.
    unnamed_number: float = 0.3
    """A number in a field that the question does not name: it may be any number."""
    filtered: float = 0.85
    """Rows of a list that meet this share of what the best one meets belong to the answer."""
    condition: float = 0.6
    """Rows with this share of the best one's words meet the condition of a question about order."""

    # Failures.
    failure_terms: float = 0.3
    """The words of a question about a failure, compared with what looks like its cause: they name what failed, not why."""
    strong_word: float = 2.0
    """fatal, panic, error: programs say this when they fail. Others, such as missing or denied, are also said in passing."""

    # How much the structure of a text adds to confidence.
    evidence_of_failure: float = 0.75
    """A program says that it gave up, or begins a message of failure."""
    evidence_of_value: float = 0.7
    """Rows that were compared by a column, or have something else where many have what is excluded."""
    evidence_of_place: float = 0.4
    """Rows by their place in the table: its order may mean nothing."""


WEIGHTS = Weights()


def idf(total: int, holding: int) -> float:
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))
