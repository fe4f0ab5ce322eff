"""Facts: the labels and values of a page. A question often has other words than the label of what it asks for."""

from __future__ import annotations

import re

from msgspec import Struct

from overspill.lexical.boost import Boost, Step, order_by_score
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.reply.render import render
from overspill.lexical.subject import find_subject
from overspill.lexical.values import find_asked_value, has_value
from overspill.lexical.weights import WEIGHTS

_FACT = re.compile(r"[^|:：]{2,40}[|:：]\s*\S[^|]{0,100}\|?\s*")
_SHEET_FACT = re.compile(r"(?=[^|:：]*[^\W\d_])[^|:：]*+(?:[|：]|:(?=\s))\s*+[^|][^|]*+\|?\s*")
"""Its label has a letter: 18:45 is a time."""
_LABEL = re.compile(r"\A[^|:：]*+[|:：]")
_LABEL_ENDS = (b"</dt>", b"</label>")
_LINK, _MAX_LINKS = b"<a ", 1
"""A label with several links leads to other pages."""
_MAX_FACT_CHARS, _MAX_FACT_BYTES = 160, 1_500
"""Of what a reader sees, and with its markup."""
_MAX_REMARK_CHARS = 60
"""Of a value without a mark between it and its label, such as "40 participants"."""
_MIN_SHEET_FACTS, _MAX_SHEET_GAP = 3, 2
"""How many facts make a sheet, and how far apart they are at most."""
_SHEET_SHARE, _SHEET_SHARE_IN_OTHER_WORDS = 0.1, 0.4
"""The share of a budget for sheets, whatever else matches; the second, if a word of the question is nowhere on the page."""
_TAG = re.compile(rb"<[^<>]*+>")
_VISIBLE = re.compile(rb"[0-9A-Za-z\x80-\xff]")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_WORD_CHARS, _MAX_WORDS = 4, 20
_MAX_RECORDS = 5_000
"""A page with more records is not about one thing."""


class _Short(Struct, frozen=True):
    """A short record: what a reader sees of it, and how many links it has."""

    text: str
    links: int


def boost_facts(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """What is short and has a label comes after all that matches; sooner if a word of the question is nowhere on the page,
    or if it has a value of the sort that is asked for. Groups of facts get their own share of the budget."""
    outline = index.outline
    if not index.traits.is_markup or index.is_partial or len(outline) > _MAX_RECORDS:
        return None
    best = max(ranking.scores.values(), default=1.0)
    weights = _weigh(index, ranking)
    plain, fitting = (weight * best for weight in weights)
    facts = index.remember(_list_facts)
    raised = dict.fromkeys(facts, plain)
    value = find_asked_value(query.text)
    if value:
        remarks = index.remember(_list_remarks).items()
        raised = {record: WEIGHTS.remark * plain for record, text in remarks if has_value(text, value)} | raised
        raised |= {record: fitting for record, text in facts.items() if has_value(text, value)}
    words = [term.key for term in ranking.terms if term.telling][:_MAX_WORDS]
    named = {record for record, text in facts.items() if _names(text, words)}
    raised |= dict.fromkeys(named, fitting)
    sheets = {
        record: ranking.scores.get(record, 0.0)
        + WEIGHTS.sheet_fact * best * ((record in named) + (value is not None and has_value(text, value)))
        for record, text in index.remember(_list_sheets).items()
    }
    share = _SHEET_SHARE if weights[0] == WEIGHTS.fact else _SHEET_SHARE_IN_OTHER_WORDS
    return Boost(raised=raised, first=(Step(order_by_score(sheets), lambda tokens: share * tokens),))


def _names(fact: str, words: list[str]) -> bool:
    """Whether a label has a form of one of these words, or a word with one in it: Gewicht and Gesamtgewicht."""
    label = _WORD.findall(fact.partition(":")[0].partition("|")[0].lower())
    return any(_are_related(*sorted((word, part), key=len)) for part in label for word in words)


def _are_related(shorter: str, longer: str) -> bool:
    beginning = shorter[: max(_MIN_WORD_CHARS, len(shorter) - 1)]
    return len(shorter) >= _MIN_WORD_CHARS and (shorter in longer or longer.startswith(beginning))


def _weigh(index: Index, ranking: Ranking) -> tuple[float, float]:
    """Of facts, and of those with such a value."""
    met = {term for spots in ranking.hits.values() for _, _, term in spots}
    asked = {number for number, term in enumerate(ranking.terms) if term.telling}
    if asked <= met:
        return WEIGHTS.fact, WEIGHTS.fitting_fact
    if index.remember(find_subject).issuperset(ranking.terms[number].key for number in asked & met):
        return WEIGHTS.fact_about_subject, WEIGHTS.fitting_fact_about_subject
    return WEIGHTS.fact_in_other_words, WEIGHTS.fitting_fact_in_other_words


def _list_facts(index: Index) -> dict[int, str]:
    """Records with what a reader sees of them."""
    return {
        record: short.text
        for record, short in index.remember(_list_short).items()
        if short.links <= _MAX_LINKS and (_FACT.fullmatch(short.text) is not None or _has_label(index, record))
    }


def _has_label(index: Index, record: int) -> bool:
    """Whether something is after the end of a label. A label alone is an option of a form."""
    source = _read_source(index, record)
    return any(end in source and _VISIBLE.search(_TAG.sub(b"", source.partition(end)[2])) is not None for end in _LABEL_ENDS)


def _list_remarks(index: Index) -> dict[int, str]:
    """Most short records with a link are items of a menu."""
    shorts = index.remember(_list_short).items()
    return {record: short.text for record, short in shorts if len(short.text) <= _MAX_REMARK_CHARS and not short.links}


def _list_sheets(index: Index) -> dict[int, str]:
    """Groups of facts, as in the table beside an article, with what is between them.

    Most other facts are parts of menus and forms. What has the same value again and again is a list of something else.
    """
    shorts, facts = index.remember(_list_short), index.remember(_list_facts)
    runs: list[list[int]] = []
    for record in (record for record, short in shorts.items() if _SHEET_FACT.fullmatch(short.text)):
        if not runs or record - runs[-1][-1] > _MAX_SHEET_GAP:
            runs.append([])
        runs[-1].append(record)
    sheets = [run for run in runs if sum(record in facts for record in run) >= max(_MIN_SHEET_FACTS, len(run) / 2)]
    values = {record: _LABEL.sub("", short.text).strip(" |") for record, short in shorts.items()}
    different = [run for run in sheets if len({values[record] for record in run}) > len(run) / 2]
    return {record: shorts[record].text for run in different for record in range(run[0], run[-1] + 1) if values.get(record)}


def _list_short(index: Index) -> dict[int, _Short]:
    spans = enumerate(zip(index.outline.starts, index.outline.ends, strict=True))
    shown = ((record, render(index, *span).strip()) for record, span in spans if span[1] - span[0] <= _MAX_FACT_BYTES)
    return {
        record: _Short(text, _read_source(index, record).count(_LINK)) for record, text in shown if len(text) <= _MAX_FACT_CHARS
    }


def _read_source(index: Index, record: int) -> bytes:
    return bytes(index.source[index.outline.starts[record] : index.outline.ends[record]]).lower()
