"""Places in a ranking, as questions say them ("came second", "won") and as columns have them (`position`: 2)."""

from __future__ import annotations

from overspill.lexical.rows.relations import last_parts
from overspill.lexical.words import stem, word_set

_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_WON = word_set("won winner winners winning champion champions")
_BEFORE_FIRST = word_set("came come comes coming finished finishes finish placed ranked")
_AFTER_FIRST = word_set("place places position positions rank")
_RANKS = frozenset(map(stem, word_set("position rank place ranking placing placement finish standing")))
_BESIDE = frozenset(map(stem, word_set("final overall number text order result")))


def find_ordinals(words: list[str]) -> dict[str, frozenset[int]]:
    """For each place in a ranking that a question asks for, where its words say so."""
    found: dict[str, int] = {}
    for place, word in enumerate(words):
        if word in _WON:
            found["1"] = place
        elif word in _ORDINALS and (word != "first" or _is_place(words, place)):
            found[str(_ORDINALS.index(word) + 1)] = place
    # "Second and third" asks for two rows, each of which is as much of the answer.
    return dict.fromkeys(found, frozenset(found.values()))


def _is_place(words: list[str], place: int) -> bool:
    """Whether "first" is a place and no beginning: not the first name, or the first day."""
    return bool(
        _BEFORE_FIRST.intersection(words[max(0, place - 1) : place]) or _AFTER_FIRST.intersection(words[place + 1 : place + 2])
    )


def is_rank(column: str) -> bool:
    """Whether a column gives final ranks. `gridPosition` does not: it says where somebody started."""
    parts = frozenset(last_parts(column))
    return not parts.isdisjoint(_RANKS) and parts <= _RANKS | _BESIDE
