"""Texts that make a backtracking pattern work hardest, made from the pattern itself.

A backtracking matcher takes more than linear time where it can divide one run of characters in many ways, or where it runs to the
end from every place it starts at. Both need a repetition. So for every repetition: what leads up to it, then a run of what it
repeats, of what leads up to it, or of both, then something that makes the match fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

_parser: Any = vars(re)["_parser"]
LARGE = 64
"""Repetitions up to which a repeat costs only a constant."""
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_TAILS = ("\x01", "")
_FIRST_CHOICES = "a0 A.,:-_/\"'<>{}[]()\n\t\\*#|"
_FOREIGN = "\xa0\xdfä“…中\u2028\u0e01\udc80\ud800"
_MOST_RUNS, _MOST_LEADS = 100, 8
_FOLLOWING = 6
"""Characters of what comes after a repetition that are themselves run on."""


class _Repeat(NamedTuple):
    """One repetition: what leads up to it, what it repeats, and what may come after it."""

    leads: tuple[str, ...]
    bodies: tuple[str, ...]
    chars: frozenset[str]
    follow: str


def attacks(pattern: re.Pattern[Any], size: int) -> Iterator[Any]:
    """Each about `size` characters long; none for a pattern that repeats nothing, which costs a constant at every place."""
    reading = _Reading(pattern)
    repeats = list(reading.repeats(reading.tree, ("",), ""))
    runs = list(dict.fromkeys(run for repeat in repeats for run in reading.runs(repeat, repeats)))
    leads = list(dict.fromkeys(lead for repeat in repeats for lead in repeat.leads)) or [""]
    seen: set[str] = set()
    for lead, run, tail in product(list(dict.fromkeys(("", *leads)))[:_MOST_LEADS], runs[:_MOST_RUNS], _TAILS):
        text = lead + run * (size // len(run)) + tail
        if text not in seen:
            seen.add(text)
            yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


class _Reading:
    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.flags = pattern.flags
        self.is_bytes = isinstance(pattern.pattern, bytes)
        self.tree = _parser.parse(pattern.pattern, pattern.flags)
        self.groups: dict[int, str] = {}
        alphabet = [chr(code) for code in range(256 if self.is_bytes else 128)] + ([] if self.is_bytes else list(_FOREIGN))
        self.alphabet = sorted(alphabet, key=lambda char: (_FIRST_CHOICES + char).index(char))
        self.known: dict[str, frozenset[str]] = {}

    def repeats(self, nodes: Iterable[Any], leads: tuple[str, ...], after: str) -> Iterator[_Repeat]:
        """Those of a sequence, with what comes before each of them."""
        nodes = list(nodes)
        for at, (op, value) in enumerate(nodes):
            here = tuple(dict.fromkeys(lead + self.sample(nodes[:at], full=full) for lead in leads for full in (False, True)))
            follow = self.sample(nodes[at + 1 :]) + after
            if str(op) in _REPEATS:
                _, most, body = value
                edges = {text[0] for text in (*here, follow) if text}
                samples = tuple(dict.fromkeys(sample for char in ("", *sorted(edges)) for sample in self.samples(body, char)))
                if most > LARGE:
                    yield _Repeat(here, samples, self.chars_in(body), follow)
                yield from self.repeats(body, here, follow)
                yield from self.repeats(body, tuple(lead + body_ for lead in here[:1] for body_ in samples[:3]), follow)
                continue
            for inner in _inside(str(op), value):
                yield from self.repeats(inner, here, follow)

    def runs(self, repeat: _Repeat, repeats: list[_Repeat]) -> Iterator[str]:
        sets = dict.fromkeys(each.chars for each in repeats)
        kinds = {tuple(char in chars for chars in sets): char for char in reversed(self.alphabet) if char in repeat.chars}
        chars = [*dict.fromkeys((*kinds.values(), *(char for char in repeat.follow[:1] if char in repeat.chars)))]
        yield from chars
        leads = [lead for lead in repeat.leads if lead]
        yield from repeat.bodies
        yield from leads
        yield from (repeat.follow[: size + 1] for size in range(min(len(repeat.follow), _FOLLOWING)))
        for lead, char in product(leads, chars):
            yield lead + char
        for lead, body in product(leads or [""], repeat.bodies):
            yield lead + body + repeat.follow[:-1] or body
            yield lead + body + repeat.follow or body

    def samples(self, nodes: Iterable[Any], wanted: str = "") -> Iterator[str]:
        """One for each way through the alternatives of a sequence; never empty."""
        nodes = list(nodes)
        yield from filter(None, (self.sample(nodes, full=full, wanted=wanted) for full in (False, True)))
        for at, (op, value) in enumerate(nodes):
            for inner in _inside(str(op), value):
                for sample in self.samples(inner, wanted):
                    yield self.sample(nodes[:at], full=True) + sample + self.sample(nodes[at + 1 :], full=True)

    def sample(self, nodes: Iterable[Any], *, full: bool = False, wanted: str = "") -> str:
        """A short text that matches, with what is optional left out, or once; of the wanted character where that fits."""
        return "".join(self._sample(str(op), value, full, wanted) for op, value in nodes)

    def _sample(self, op: str, value: Any, full: bool, wanted: str) -> str:
        if op in _REPEATS:
            least, _, body = value
            return self.sample(body, full=full, wanted=wanted) * min(max(least, int(full)), LARGE)
        if op == "SUBPATTERN":
            found = self.sample(value[3], full=full, wanted=wanted)
            self.groups[value[0]] = found
            return found
        if op == "BRANCH":
            return self.sample(value[1][0], full=full, wanted=wanted)
        if op == "ATOMIC_GROUP":
            return self.sample(value, full=full, wanted=wanted)
        if op == "GROUPREF":
            return self.groups.get(value, "")
        chars = self.chars(op, value)
        return next((char for char in (wanted, *self.alphabet) if char in chars), "") if chars else ""

    def chars_in(self, nodes: Iterable[Any]) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for op, value in nodes:
            found |= self.chars(str(op), value)
            inner = [value[2]] if str(op) in _REPEATS else list(_inside(str(op), value))
            found = found.union(*map(self.chars_in, inner))
        return found

    def chars(self, op: str, value: Any) -> frozenset[str]:
        """The characters one position may have; empty for what takes up none."""
        if op not in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return frozenset()
        key = f"{op} {value}"
        if key not in self.known:
            self.known[key] = frozenset(char for char in self.alphabet if self._has(op, value, char))
        if not self.known[key] and op == "LITERAL":
            return frozenset(chr(value))
        return self.known[key]

    def _has(self, op: str, value: Any, char: str) -> bool:
        if op == "ANY":
            return char != "\n" or bool(self.flags & re.DOTALL)
        forms = {char, char.lower(), char.upper()} if self.flags & re.IGNORECASE and char.isascii() else {char}
        if op == "LITERAL":
            return chr(value) in forms
        if op == "NOT_LITERAL":
            return chr(value) not in forms
        negated = str(value[0][0]) == "NEGATE"
        return negated != any(self._is_in(str(kind), item, form) for kind, item in value[negated:] for form in forms)

    def _is_in(self, kind: str, item: Any, char: str) -> bool:
        if kind == "LITERAL":
            return ord(char) == item
        if kind == "RANGE":
            return item[0] <= ord(char) <= item[1]
        return _category(str(item), self.is_bytes).match(char.encode("latin-1") if self.is_bytes else char) is not None


@lru_cache
def _category(name: str, is_bytes: bool) -> re.Pattern[Any]:
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rpartition("_")[2]]
    spelt = "\\" + (letter.upper() if "_NOT_" in name else letter)
    return re.compile(spelt.encode() if is_bytes else spelt)


def _inside(op: str, value: Any) -> Iterator[Any]:
    if op == "SUBPATTERN":
        yield value[3]
    elif op == "BRANCH":
        yield from value[1]
    elif op == "ATOMIC_GROUP":
        yield value
    elif op in ("ASSERT", "ASSERT_NOT"):
        yield value[1]
