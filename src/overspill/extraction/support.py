"""Whether stored text supports an answer: a line that a model cites proves nothing unless it holds what the answer says, and an
answer that cites nothing may still be there word for word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from overspill.extraction import spelling
from overspill.extraction.chunks import NumberedLine, Span
from overspill.store.protocols import Reader
from overspill.text.regex import regex

_TOKEN = regex(r"\w+(?:[.:/@#%+'&-]+\w+)*%?")
_THOUSANDS = regex(r"(?<=\d),(?=\d{3})")
_NUMBERS_OF_LINES = regex(r"(?i)[\[(](?:lines?\s?)?\d{1,9}(?:\s?[-–,]\s?\d{1,9})*[\])]")
_MIN_WORD_CHARS = 4
_MAX_ANSWER_CHARS = 20_000
_MAX_TERMS = 64
_MAX_MATCHES = 200_000
_MAX_PLACES = 6
_WINDOW_BYTES = 400
_MAX_MARGIN_BYTES = 160
_COMMON_WORDS = """
a an and are as at but by can do for has how if in is it its no not of on one or so the to two was who why yes you about
above after also answer answers based because been before being below between both cannot chunk contain contains could
data describes document does each exact exactly file following found from given have here identifiers information into
just like line lines made mentioned more most names none note numbers only other output over part provided question
quotes relevant same says should show shown shows since some state stated states such tells text than that their them
then there these they this those through time times tool under used using very were what when where which while will
with within would your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


class Claims:
    """The searchable parts of an answer: values (numbers, names, identifiers), and words that are not in the question."""

    def __init__(self, answer: str, question: str) -> None:
        asked = {token.casefold() for token in _TOKEN.findall(_THOUSANDS.sub("", question))}
        said = _NUMBERS_OF_LINES.sub("", _THOUSANDS.sub("", answer[:_MAX_ANSWER_CHARS]))
        tokens = dict.fromkeys(token for token in _TOKEN.findall(said) if token.casefold() not in _COMMON)
        own = [token for token in tokens if token.casefold() not in asked]
        self.values = _fold(token for token in own if _is_value(token, said))
        self.words = _fold(token for token in own if len(token) >= _MIN_WORD_CHARS)
        self.repeats = _fold(token for token in tokens if len(token) >= _MIN_WORD_CHARS or _is_value(token, said))
        """All of them, for an answer that says nothing but what the question says."""
        self.asked = _fold(token for token in asked if len(token) >= _MIN_WORD_CHARS and token not in _COMMON)

    @property
    def terms(self) -> tuple[str, ...]:
        return self.values or self.words

    def are_enough(self, held: int) -> bool:
        """Whether these are at least half of the values or, without values, half of the words."""
        return held * 2 >= len(self.terms) and held >= (1 if self.values else min(2, len(self.words)))

    def count_in(self, text: str) -> int:
        """How many of the terms the text contains or, if there are none, how many of the question's words in the answer."""
        folded = _THOUSANDS.sub("", spelling.simplify(text)).casefold()
        return sum(_holds(folded, term) for term in self.terms or self.repeats)


def choose_supporting(lines: Sequence[NumberedLine], answer: str, question: str) -> list[NumberedLine]:
    """The cited lines that contain something from the answer; none if together they do not support it."""
    claims = Claims(answer, question)
    holding = [line for line in lines if claims.count_in(line.text)]
    held = claims.count_in("\n".join(line.text for line in holding))
    return holding if (claims.are_enough(held) if claims.terms else held == len(claims.repeats)) else []


def locate_claims(reader: Reader, answer: str, question: str, spans: Sequence[Span]) -> list[Span]:
    """Where the stored bytes have the answer's words next to words of the question, best places first. Places with the answer's
    words alone do not count, because those may be anywhere. Blocks."""
    claims = Claims(answer, question)
    if not claims.terms:
        return []
    windows = _scan(reader, claims, spans)
    found: list[Span] = []
    missing = set(range(len(claims.terms)))
    while missing and len(found) < _MAX_PLACES and windows:
        best = max(windows, key=lambda window: (len(window.terms & missing), len(window.asked), -window.start))
        if not best.terms & missing or not best.asked:
            break
        missing -= best.terms
        found.append(_widen(reader, best))
        windows.remove(best)
    return found if found and claims.are_enough(len(claims.terms) - len(missing)) else []


class _Window:
    """Neighbouring matches: which terms of the answer they are, from where to where, and which words of the question."""

    __slots__ = ("asked", "begin", "end", "start", "terms")

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.start = self.end = -1
        self.terms: set[int] = set()
        self.asked: set[int] = set()


def _scan(reader: Reader, claims: Claims, spans: Sequence[Span]) -> list[_Window]:
    """One pass, in linear time. A window holds as many matches as there are within its size."""
    numbers = {term: place for place, term in enumerate(claims.terms)}
    asked = {term: place for place, term in enumerate(claims.asked) if term not in numbers}
    data = reader.buffer()
    patterns: list[bytes] = []
    for term in sorted((*numbers, *asked), key=len, reverse=True):
        edges = [rb"\b" if char.isascii() and (char.isalnum() or char == "_") else b"" for char in (term[0], term[-1])]
        patterns.append(rb"%s(?i:%s)%s" % (edges[0], spelling.escape_literal(term), edges[1]))
    windows: list[_Window] = []
    try:
        for match in islice(spelling.find_matches(patterns, data, spans), _MAX_MATCHES):
            start, end = match.span()
            term = bytes(data[start:end]).decode("utf-8", "replace").casefold()
            if not windows or start - windows[-1].begin > _WINDOW_BYTES:
                windows.append(_Window(start))
            window = windows[-1]
            if term in numbers:
                window.start = start if window.start < 0 else window.start
                window.end = end
                window.terms.add(numbers[term])
            else:
                window.asked.add(asked.get(term, -1))
    finally:
        data.release()
    return [window for window in windows if window.terms]


def _widen(reader: Reader, window: _Window) -> Span:
    """The span of a window, extended to whole lines if their ends are near."""
    low = max(window.start - _MAX_MARGIN_BYTES, 0)
    before = reader.read(low, window.start)
    after = reader.read(window.end, min(window.end + _MAX_MARGIN_BYTES, reader.size))
    begins = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
    ends = min((at for at in (after.find(b"\n"), after.find(b"\r")) if at >= 0), default=-1)
    start = low + begins if begins or not low else window.start
    return Span(start, window.end + (ends if ends >= 0 else len(after) if window.end + len(after) == reader.size else 0))


def _is_value(token: str, text: str) -> bool:
    if any(char.isdigit() for char in token) or not token.replace("'", "").isalpha():
        return True
    return len(token) > 1 and not token.islower() and not text.startswith(token)


def _fold(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(term.casefold() for term in terms), _MAX_TERMS))


def _holds(text: str, term: str) -> bool:
    """Whether the text contains the term as a whole word: 1500 does not contain 500."""
    at = text.find(term)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(term) : at + len(term) + 1]
        if not (before.isalnum() and term[0].isalnum()) and not (after.isalnum() and term[-1].isalnum()):
            return True
        at = text.find(term, at + 1)
    return False
