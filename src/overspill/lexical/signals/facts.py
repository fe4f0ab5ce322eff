"""Facts: the labels and values of a page. A question often has other words than the label of what it asks for."""

from __future__ import annotations

import re

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.render import render
from overspill.lexical.weights import WEIGHTS

_FACT = re.compile(r"[^|:]{2,40}[|:]\s*\S[^|]{0,100}\|?\s*")
_TERM_END = b"</dt>"
_LINK, _MAX_LINKS = b"<a ", 1
"""A label with several links leads to other pages."""
_MAX_FACT_CHARS, _MAX_FACT_BYTES = 160, 1_500
"""Of what a reader sees, and with its markup."""
_MAX_RECORDS = 5_000
"""A page with more records is not about one thing."""


def boost_facts(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """What is short and has a label comes after all that matches; sooner if a word of the question is nowhere on the page."""
    outline = index.outline
    if not index.traits.is_markup or index.is_partial or len(outline) > _MAX_RECORDS or not ranking.scores:
        return None
    weight = WEIGHTS.fact_in_other_words if _lacks_a_word(ranking) else WEIGHTS.fact
    score = weight * max(ranking.scores.values())
    return Boost(raised=dict.fromkeys(index.remember(_list_facts), score))


def _lacks_a_word(ranking: Ranking) -> bool:
    found = {term for spots in ranking.hits.values() for _, _, term in spots}
    return any(term.telling and number not in found for number, term in enumerate(ranking.terms))


def _list_facts(index: Index) -> list[int]:
    spans = zip(index.outline.starts, index.outline.ends, strict=True)
    return [record for record, (start, end) in enumerate(spans) if end - start <= _MAX_FACT_BYTES and _is_fact(index, start, end)]


def _is_fact(index: Index, start: int, end: int) -> bool:
    text = render(index, start, end).strip()
    if len(text) > _MAX_FACT_CHARS:
        return False
    source = bytes(index.source[start:end]).lower()
    return source.count(_LINK) <= _MAX_LINKS and (_FACT.fullmatch(text) is not None or _TERM_END in source)
