"""Secrets by their shape: gitleaks' rules and a few of our own, behind one filter for the words that they need."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib.resources import files

import msgspec
from msgspec import Struct

from overspill.text.patterns import Match, Pattern, Searched, compile_pattern, escape, find_spans
from overspill.text.regex import regex

_BEFORE_BYTES = 512
_REACH_BYTES, _LONG_REACH_BYTES = 4 << 10, 32 << 10
"""After a keyword, searched for the whole match: more for rules that do not limit how long a secret is."""
_KEYWORD_BYTES = 40
_UNLIMITED = regex(r",\}|[])][+*]")
_QUOTES = b" \t\r\n'\"`\\"
"""At the ends of a match: they stay, so that what was JSON is still JSON."""
_NAME = regex(rb"[\w.-]{0,50}\Z")
_FILTERS = {
    "ey": rb"eyj",
    "s.": rb"\bs\.[a-z0-9]{24}",
    "sk": rb"sk[0-9a-f]{32}",
    "q~": rb"\dq~",
    "secret": rb"kind:[ \t]*[\"']?secret",
}
"""Stricter than keywords that are in every other word."""
_COMMON = (
    rb"(?:access|auth|api|credential|creds|key|passw|secret|token|passphrase|[_.-]pass|pwd)[ \t\w.-]{0,20}[\s'\"\\]{0,6}"
    rb"(?:[=>:,]|\|\|)[\x60'\"\s=\\]{0,8}[^\s'\"\x60(){}\[\]<>$]{8}"
    rb"|://[^\s/@]{0,80}:[^\s/@]{3}|authorization[\"'\\\s]{0,4}[:=]|bearer[\s:=]{1,3}[\w.~+/=-]{20}"
)
"""In place of keywords that are too common: a name and what may be its value."""
_COMMON_RULES = {"generic-api-key", "hashicorp-tf-password"}
_REWRITTEN = {
    r"[\w.-]{0,50}?": "",  # it would be tried at every byte; the name in front of a match is looked up afterwards
    r"[\s'\"]{0,3}": r"[\s'\"\\]{0,6}",  # JSON in a string has backslashes before its quotes
    r"[\x60'\"\s=]{0,5}": r"[\x60'\"\s=\\]{0,8}",
    r"(?:[\x60'\"\s;]|\\[nr]|$)": r"(?:[\x60'\"\s;,&)<>\]}\\]|$)",  # in URLs, prose and markup, too
}


class Finding(Struct, frozen=True, order=True):
    """`value`: the secret itself, whichever its encoding; empty if several secrets overlap."""

    start: int
    end: int
    kind: str
    value: bytes


class Rule(Struct, frozen=True, eq=False, dict=True):
    """As in gitleaks' file. A rule without keywords is searched for where a name has a value."""

    id: str
    regex: str
    keywords: tuple[str, ...] = ()
    group: int = 0
    entropy: float = 0.0
    allowed: tuple[str, ...] = ()
    allowed_matches: tuple[str, ...] = ()
    stopwords: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> Pattern:
        """Compiled when it is first needed: most rules never are."""
        spelling = self.regex
        for old, new in _REWRITTEN.items():
            spelling = spelling.replace(old, new)
        return compile_pattern(spelling.encode())

    @cached_property
    def reach(self) -> int:
        is_long = self.id not in _COMMON_RULES and _UNLIMITED.search(self.regex)
        return _LONG_REACH_BYTES if is_long else _REACH_BYTES

    def find(self, data: Searched, start: int, end: int) -> Iterator[Finding]:
        for match in self.pattern.finditer(data, start, end):
            first, last = self._find_secret(match)
            found = bytes(data[first:last])
            value = found.strip(_QUOTES)
            first += found.find(value)
            if value and _measure_entropy(value) >= self.entropy and not self._is_allowed(value, data, match):
                yield Finding(first, first + len(value), self.id, value)

    def _find_secret(self, match: Match) -> tuple[int, int]:
        """gitleaks' way: the group that the rule names, or the first that took part, or everything."""
        numbers = (self.group,) if self.group else range(1, match.re.groups + 1)
        return next((match.span(number) for number in numbers if match.span(number)[0] >= 0), match.span())

    def _is_allowed(self, value: bytes, data: Searched, match: Match) -> bool:
        start, end = match.span()
        values, words, matches = self._exceptions
        if (values is not None and values.search(value)) or (words is not None and words.search(value)):
            return True
        name = _NAME.search(bytes(data[max(0, start - 50) : start]))
        return matches is not None and matches.search((name[0] if name else b"") + bytes(data[start:end])) is not None

    @cached_property
    def _exceptions(self) -> tuple[Pattern | None, Pattern | None, Pattern | None]:
        """For the secret, for what is in it, and for the whole match."""
        shared = _read_rules("gitleaks.json")
        words = [escape(word.encode()) for word in (*shared.stopwords, *self.stopwords)]
        values = _join((*shared.allowed, *self.allowed))
        return values, compile_pattern(b"|".join(words), ignore_case=True), _join(self.allowed_matches)


class _RuleFile(Struct, frozen=True):
    rules: tuple[Rule, ...]
    allowed: tuple[str, ...] = ()
    stopwords: tuple[str, ...] = ()


class Shapes:
    """All rules."""

    def __init__(self) -> None:
        known = (*_read_rules("own-rules.json").rules, *_read_rules("gitleaks.json").rules)
        self._common = [rule for rule in known if not rule.keywords or rule.id in _COMMON_RULES]
        rules = [rule for rule in known if rule not in self._common]
        words = {word for rule in rules for word in rule.keywords}
        spoken = {word: [rule for rule in rules if word in rule.keywords] for word in words}
        # Also those of a shorter word inside the word, because the filter finds only the longest.
        inner = {word: [each for each in words if each == word or (each in word and each not in _FILTERS)] for word in words}
        self._rules = {word: [rule for each in inner[word] for rule in spoken[each]] for word in words}
        self._rules["eyj"] = self._rules["ey"]  # the only filter that is a plain word
        spelt = [_FILTERS.get(word) or escape(word.encode()) for word in sorted(words, key=len, reverse=True)]
        self._words = compile_pattern(b"|".join(spelt), ignore_case=True)
        self._filter = compile_pattern(b"|".join((_COMMON, *spelt)), ignore_case=True, max_memory=64 << 20)

    def find(self, data: Searched, patterns: Mapping[str, Pattern]) -> Iterator[Finding]:
        """Not ordered, and some may overlap. `patterns`: the user's own, which are searched for everywhere."""
        for rule, windows in self._find_windows(data).items():
            for start, end in windows:
                yield from rule.find(data, start, end)
        for kind, pattern in patterns.items():
            for start, end in find_spans(pattern, data, 0, len(data)):
                if end > start:
                    yield Finding(start, end, kind, bytes(data[start:end]))

    def _find_windows(self, data: Searched) -> dict[Rule, list[list[int]]]:
        """Where each rule can match. The windows of a rule do not overlap, so that no byte is searched twice for it."""
        found: dict[Rule, list[list[int]]] = {}
        for start, end in find_spans(self._filter, data, 0, len(data)):
            for rule in self._find_rules(data, start, end):
                first, last = max(0, start - _BEFORE_BYTES), min(len(data), end + rule.reach)
                windows = found.setdefault(rule, [])
                if windows and first <= windows[-1][1]:
                    windows[-1][1] = last
                else:
                    windows.append([first, last])
        return found

    def _find_rules(self, data: Searched, start: int, end: int) -> Iterable[Rule]:
        """For what the filter found: a keyword, or a name and how a value begins, which may be with a keyword."""
        if (rules := self._rules.get(bytes(data[start:end]).lower().decode("latin-1"))) is not None:
            return rules
        hit = bytes(data[start : end + _KEYWORD_BYTES]).lower()
        words = [hit[start:end].decode("latin-1") for start, end in find_spans(self._words, hit, 0, len(hit))]
        names = [word if word in self._rules else next(each for each in _FILTERS if each in word) for word in words]
        return {*self._common, *(rule for name in names for rule in self._rules[name])}


@cache
def read_shapes() -> Shapes:
    return Shapes()


@cache
def _read_rules(name: str) -> _RuleFile:
    return msgspec.json.decode((files("overspill.redaction") / name).read_bytes(), type=_RuleFile)


def _join(spellings: tuple[str, ...]) -> Pattern | None:
    return compile_pattern("|".join(f"(?:{each})" for each in spellings).encode()) if spellings else None


def _measure_entropy(value: bytes) -> float:
    """Shannon's, in bits for each byte."""
    size = len(value) or 1
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
