"""Adds related words to a question: prose says the same thing in other words, and its best passages contain them."""

from __future__ import annotations

from collections import Counter

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query, Term
from overspill.lexical.rank import Ranking, score_wording
from overspill.lexical.render import render
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, split_words, stem

_SAMPLED_PASSAGES, _MIN_PASSAGES_SHARING = 8, 3
"""How many of the best passages to read, and in how many of them a word must occur."""
_MAX_ADDED_WORDS = 30
_MIN_WORD_CHARS = 4
_MAX_PASSAGE_BYTES = 4_000


def boost_related_words(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Keeps the matches, and also scores them by the words that the best of them share."""
    if not index.traits.is_running_text:
        return None
    asked = {term.key for term in query.terms}
    shared: Counter[str] = Counter()
    for record in ranking.best(_SAMPLED_PASSAGES):
        start = index.outline.starts[record]
        words = split_words(render(index, start, min(index.outline.ends[record], start + _MAX_PASSAGE_BYTES)))
        shared.update({stem(word) for word in words if _is_telling(word)} - asked)
    company = sorted((word for word in shared if shared[word] >= _MIN_PASSAGES_SHARING), key=lambda word: (-shared[word], word))[
        :_MAX_ADDED_WORDS
    ]
    if not company:
        return None
    terms = tuple(Term(word, WEIGHTS.related, role="wording") for word in company)
    scores = dict(ranking.scores)
    for record, more in score_wording(index, ranking, terms).items():
        scores[record] = scores.get(record, 0.0) + more
    return Boost(rescored=scores)


def _is_telling(word: str) -> bool:
    return (
        len(word) >= _MIN_WORD_CHARS
        and word.isalpha()
        and word not in read_lexicon("stop")
        and word not in read_lexicon("wording")
    )
