"""Parses a question: its terms, their weights, and the kind of answer it wants."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import compile_phrases, read_lexicon, read_related, split_subwords, split_words, stem
from overspill.text.regex import regex

_QUOTED = regex(r"\"([^\"]{2,200})\"|“([^”]{2,200})”|`([^`]{2,200})`|(?<!\w)'([^']{2,200})'(?!\w)")
_TOKEN = regex(r"[^\W_][\w./:@#+~-]*[^\W_]|[^\W_]")
_IDENTIFIER = regex(r"\D*+\d.*[./_:@+-]|[^._/:@+-]*+[._/:@+-].*\d|.*(?:[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|_|\w/\w|\w\.\w|::)")
_MIN_NAME_CHARS = 3
"""The shortest last part of `module.function_name` to look for by itself: its definition lacks the other parts."""
_CONTRACTED = regex(r"(?i)\b(?:[a-z]{2,6}n['’]t)\b")
"""`isn't`, `won't`: contractions, whose halves would be different words."""
_HIDDEN = regex(r"(?s)<!--.*?(?:-->|\Z)")
"""Instructions in a template for the person who fills it in."""
_EXAMPLE = regex(
    r"(?ms)^[ \t]{0,3}```.*?(?:^[ \t]{0,3}```|\Z)|^Traceback \(most recent[^\n]*(?:\n[ \t][^\n]*)*+|^(?:[ ]{4}|\t|>>> )[^\n]*",
)
"""Quotes in a report: fenced or indented code, a session, a stack trace. Few of their many words are about the question."""
_NUMBER = regex(r"\d[\d.,:/-]*$")

_LISTING = r"\b(?:{all}|which (?:of the )?(?!(?:is|was|has|does)\b)\w+s|which\b[^.?!]{0,200}? (?:are|were|have))\b"

MOST_TERMS = 256
"""Only this many terms of a question are used. A matcher for more would be too slow."""
_MAX_TERM_CHARS = 200
_MAX_SHORT_TERMS = 8
"""A question with more terms is long."""
_MAX_QUESTION_CHARS = 20_000

Role: TypeAlias = Literal["asked", "part", "wording"]
"""The role of a word: the subject of the question, part of a name that is the subject, or only wording of the request."""


class Term(Struct, frozen=True):
    """A stem to look for or, if `literal`, an exact spelling."""

    key: str
    weight: float
    literal: bool = False
    role: Role = "asked"
    instead_of: str = ""
    """The key of the term that it is a near synonym of."""

    @property
    def telling(self) -> bool:
        return self.role == "asked"


class Query(Struct, frozen=True):
    text: str
    terms: tuple[Term, ...]
    failure: bool
    how: bool
    """Whether it asks how to do something or what something means, not what happened."""
    listing: bool
    after: bool
    before: bool
    counting: bool
    vague: bool
    """Whether it has only stop words, which are then used."""
    cut: bool = False
    """Whether some of its words are not used."""
    other: str = ""
    """The words in parentheses at its end, which the text may use instead of the question's words."""
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Keys of terms that follow each other in the question, ignoring stop words."""


class _Terms(dict[tuple[str, bool], Term]):
    """Terms by spelling. Terms that are too long or too many are dropped."""

    cut = False

    def add(self, term: Term) -> None:
        place = (term.key, term.literal)
        if place in self:
            self[place] = max(self[place], term, key=lambda each: each.weight)
        elif len(self) < MOST_TERMS and len(term.key) <= _MAX_TERM_CHARS:
            self[place] = term
        else:
            self.cut = True


def parse(question: str) -> Query:
    terms = _Terms()
    text, other = _split_other_words(_HIDDEN.sub(" ", question[:_MAX_QUESTION_CHARS]))
    text, examples = _split_examples(text)
    tokens = _TOKEN.findall(_CONTRACTED.sub(" ", text)) or text.split()
    others = _TOKEN.findall(other)
    silent = _find_silent_words(text, [*tokens, *others])
    quoted = [next(group for group in found.groups() if group) for found in _QUOTED.finditer(text)]
    for phrase in quoted:
        said = frozenset[str]() if read_lexicon("stop").issuperset(split_words(phrase)) else silent
        for token in _TOKEN.findall(phrase):
            _add_token(token, WEIGHTS.quoted, said, terms.add)
    for token in tokens:
        _add_token(token, 1.0, silent, terms.add)
    words = [word for token in tokens for word in split_words(token) if word not in silent]
    for token in others:
        _add_token(token, WEIGHTS.other_word, silent, terms.add)
    for token in examples:
        _add_token(token, WEIGHTS.example, silent, terms.add)
    if not other:
        _add_related(terms)
    return Query(
        text=text,
        other=other,
        terms=tuple(terms.values()),
        failure=_says(r"\b{failure}\b", _QUOTED.sub(" ", text)),
        how=_says(r"\b{how}\b", text),
        listing=_says(_LISTING, text),
        after=_says(r"\b{after}\b", text),
        before=_says(r"\b{before}\b", text),
        counting=_says(r"\b{count}\b", text),
        vague=not silent and len(tokens) > 1,
        cut=terms.cut or len(question) > _MAX_QUESTION_CHARS,
        pairs=frozenset((stem(first), stem(second)) for first, second in pairwise(words) if first != second),
    )


def _says(phrases: str, text: str) -> bool:
    return compile_phrases(phrases).search(text) is not None


def _split_other_words(question: str) -> tuple[str, str]:
    """Splits off alternative words in parentheses: "How do I undo it? (revert, reset, roll back)"."""
    asked, _, inside = question.rstrip(" \t\n.?!").rpartition(" (")
    is_list = inside.endswith(")") and inside.count(")") == 1 and any(sign in inside for sign in ",;")
    return (asked, inside[:-1]) if is_list and asked.strip() else (question, "")


def _split_examples(question: str) -> tuple[str, list[str]]:
    """The question without its quotes, and the words in those quotes."""
    said = _EXAMPLE.sub("\n", question)
    if not _TOKEN.search(said):
        return question, []
    return said, [token for found in _EXAMPLE.finditer(question) for token in _TOKEN.findall(found[0])]


def list_failure_words(question: str) -> set[str]:
    """The stems of the words that only say that something failed."""
    return {stem(word) for found in compile_phrases(r"\b{failure}\b").finditer(question) for word in split_words(found[0])}


def _add_related(terms: _Terms) -> None:
    """Adds synonyms to a short question, whose answer may use another word. A long question already uses several words."""
    asked = [term for term in terms.values() if term.telling]
    for term in asked if len(asked) <= _MAX_SHORT_TERMS else ():
        for key in () if term.literal else read_related().get(term.key, ()):
            if (key, False) not in terms:
                terms.add(Term(key, WEIGHTS.synonym, role="wording", instead_of=term.key))


def _find_silent_words(text: str, tokens: list[str]) -> frozenset[str]:
    """The stop words to ignore, except those in capitals among other words (GET, US, NO). Empty if there are only stop words."""
    words = {word for token in tokens for word in split_words(token) or [token]}
    if words <= read_lexicon("stop"):
        return frozenset()
    known = read_lexicon("stop")
    shouted = () if text.isupper() else (token.lower() for token in tokens if len(token) > 1 and token.isupper())
    return known.difference(shouted)


def _add_token(token: str, weight: float, silent: frozenset[str], add: Callable[[Term], None]) -> None:
    lower = token.lower()
    parts = split_subwords(token)
    if _NUMBER.match(token) or (len(token) > 2 and _IDENTIFIER.match(token)) or not parts:
        add(Term(lower, WEIGHTS.identifier * weight, literal=True))
        last = min((token.rpartition(mark)[2] for mark in ".:"), key=len)
        if last != token and len(last) >= _MIN_NAME_CHARS and last[0].isalpha() and _IDENTIFIER.match(last):
            add(Term(last.lower(), WEIGHTS.identifier * weight, literal=True))
        for part in parts if len(parts) > 1 else ():
            if part not in read_lexicon("stop") and (len(part) > 1 or part.isdigit()):
                add(Term(stem(part), WEIGHTS.part_of_identifier * weight, role="part"))
        return
    for word in split_words(lower):
        if word not in silent:
            wording = word in read_lexicon("wording") and weight <= 1.0
            add(Term(stem(word), WEIGHTS.wording, role="wording") if wording else Term(stem(word), weight))
