"""Facts: the labels and values of a page. A question often uses other words than the label of its answer."""

from __future__ import annotations

from overspill.lexical.boost import Boost, Step, order_by_score
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.reply.render import render
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import compile_phrases
from overspill.text.regex import Pattern, regex

_FACT = regex(r"[^|:：]{2,40}[|:：]\s*\S[^|]{0,100}\|?\s*")
_SHEET_FACT = regex(r"(?=[^|:：]*[^\W\d_])[^|:：]*+(?:[|：]|:(?=\s))\s*+[^|][^|]*+\|?\s*")
"""The label needs a letter, because 18:45 is a time."""
_MAX_FACT_CHARS, _MAX_FACT_BYTES = 160, 1_500
"""The longest visible text of a fact, and its longest markup."""
_MIN_SHEET_FACTS, _MAX_SHEET_GAP = 3, 2
"""How many facts make a sheet, and how far apart they may be."""
_SHEET_SHARE, _SHEET_SHARE_IN_OTHER_WORDS = 0.1, 0.4
"""The share of a budget reserved for sheets. The second applies if a word of the question is nowhere on the page."""
_MAX_RECORDS = 5_000
"""A page with more records is not about one thing."""
_PLAIN_FACT = WEIGHTS.least + WEIGHTS.row_step
"""The score of a fact as a share of the best score: it comes after all matches, because the question may use other words."""
_NUMBER = regex(r"\d")
_TIME = regex(r"\b(?:1[4-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\b\d{1,2}:\d\d\b|\d\s?[年月日년월일]")


def boost_facts(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Shows short labelled values after everything that matches. They come sooner if a word of the question is nowhere on the
    page, or if the question asks for a value of their type. Groups of facts get a share of the budget."""
    if not index.traits.is_markup or index.is_partial or len(index.outline) > _MAX_RECORDS:
        return None
    best = max(ranking.scores.values(), default=1.0)
    plain, fitting = _weigh(index, ranking)
    value = _find_asked_value(query.text)

    def fits(text: str) -> bool:
        return value is not None and value.search(text) is not None

    raised = {record: best * (fitting if fits(text) else plain) for record, text in index.remember(_list_facts).items()}
    sheets = {
        record: ranking.scores.get(record, 0.0) + best * fits(text) for record, text in index.remember(_list_sheets).items()
    }
    share = _SHEET_SHARE if plain == _PLAIN_FACT else _SHEET_SHARE_IN_OTHER_WORDS
    return Boost(raised=raised, first=(Step(order_by_score(sheets), lambda tokens: share * tokens),))


def _find_asked_value(question: str) -> Pattern[str] | None:
    if compile_phrases("{asks_time}").search(question):
        return _TIME
    return _NUMBER if compile_phrases("{asks_number}").search(question) else None


def _weigh(index: Index, ranking: Ranking) -> tuple[float, float]:
    """The weights of facts, and of facts with a value of the requested type."""
    met = {term for spots in ranking.hits.values() for _, _, term in spots}
    asked = {number for number, term in enumerate(ranking.terms) if term.telling}
    if asked <= met:
        return _PLAIN_FACT, WEIGHTS.fitting_fact
    return WEIGHTS.fact_in_other_words, WEIGHTS.fitting_fact_in_other_words


def _list_facts(index: Index) -> dict[int, str]:
    """Facts by record, as a reader sees them."""
    return {record: text for record, text in index.remember(_list_short).items() if _FACT.fullmatch(text)}


def _list_sheets(index: Index) -> dict[int, str]:
    """Groups of facts, such as the table beside an article, with everything between them.

    Most other facts are parts of menus and forms.
    """
    shorts, facts = index.remember(_list_short), index.remember(_list_facts)
    runs: list[list[int]] = []
    for record in (record for record, text in shorts.items() if _SHEET_FACT.fullmatch(text)):
        if not runs or record - runs[-1][-1] > _MAX_SHEET_GAP:
            runs.append([])
        runs[-1].append(record)
    sheets = [run for run in runs if sum(record in facts for record in run) >= max(_MIN_SHEET_FACTS, len(run) / 2)]
    return {record: shorts[record] for run in sheets for record in range(run[0], run[-1] + 1) if shorts.get(record)}


def _list_short(index: Index) -> dict[int, str]:
    """The visible text of each short record."""
    spans = enumerate(zip(index.outline.starts, index.outline.ends, strict=True))
    shown = ((record, render(index, *span).strip()) for record, span in spans if span[1] - span[0] <= _MAX_FACT_BYTES)
    return {record: text for record, text in shown if len(text) <= _MAX_FACT_CHARS}
