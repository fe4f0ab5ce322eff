"""Finds secrets by their shape with gitleaks' rules and some additional ones, behind one filter for their keywords."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path

import msgspec
from msgspec import Struct

from overspill.redaction.finding import Finding
from overspill.redaction.named import NamedValues
from overspill.text.lenient_json import ready
from overspill.text.patterns import Pattern, Searched, compile_pattern, escape, find_groups
from overspill.text.regex import regex

_BEFORE_BYTES = 512
REACH_BYTES, _LONG_REACH_BYTES = 1 << 10, 32 << 10
"""How far after a keyword to search for the whole match. Further for rules without a limit on the length of a secret."""
_UNLIMITED = regex(r",\}|[])][+*]")
_QUOTES = b" \t\r\n'\"`\\"
"""Characters to strip from the ends of a match, to keep JSON valid."""
_MARK = regex(rb"\[redacted:[\w-]+:[a-z2-7]{8}")
_FILTERS = {
    "ey": rb"eyj",
    "s.": rb"\bs\.[a-z0-9]{24}",
    "sk": rb"sk[0-9a-f]{32}",
    "sk-": rb"\bsk-(?:[a-z0-9]{32}|proj|svcacct|admin)",
    ":aa": rb"[0-9]:aa[a-z0-9_-]{33}",
    "q~": rb"\dq~",
    "secret": rb"kind:[ \t]*[\"']?secret",
    "test_": rb"test_[0-9a-f]{35}",
    "key-": rb"\bkey-[0-9a-f]{32}",
    "sk_": rb"\bsk_[0-9a-f]{16}",
    "re_": rb"\bre_[a-z0-9]{8}_[a-z0-9]{16}",
    "pat": rb"\bpat[a-z0-9]{14}\.",
    "cio": rb"\bcio[a-z0-9]{32}",
    "oy2": rb"\boy2[a-z0-9]{43}",
    "login": rb"\blogin (?:[\w./:-]{1,80} )?-",
    "ldap": rb"\bldap[a-z]{3,8} -",
    "mysql": rb"\bmysql(?:dump|admin)? -",
    "mongo": rb"\bmongo(?:sh|dump|restore)? ",
}
"""Stricter replacements for keywords that occur in every other word."""
_NAMED = rb"://[^\s/@]{0,80}:[^\s/]{3}|authorization[\"'\\\s]{0,4}[:=]|bearer[\s:=]{1,3}[\w.~+/=-]{20}"
"""The pattern that replaces the keywords of named rules."""
VALUE_BYTES = 18
"""The end of a `_NAMED` match, where other secrets may begin: the beginning of the value, and quotes before it."""
_REWRITTEN = {
    r"[\w.-]{0,50}?": "",  # would be tried at every byte; the name before a match is looked up afterwards
    r"[\s'\"]{0,3}": r"[\s'\"\\]{0,6}",  # JSON in a string has backslashes before its quotes
    r"[\x60'\"\s=]{0,5}": r"[\x60'\"\s=\\]{0,8}",
    r"(?:[\x60'\"\s;]|\\[nr]|$)": r"(?:[\x60'\"\s;,&)<>\]}\\]|$)",  # secrets also end like this in URLs, prose and markup
}


class Rule(Struct, frozen=True, eq=False, dict=True):
    """A rule as in gitleaks' file. `named`: it begins with one of its keywords, the name of a value. `sure`: hides its matches
    even if they look made up, such as "abcdef…"."""

    id: str
    regex: str
    keywords: tuple[str, ...]
    named: bool = False
    sure: bool = False
    group: int = 0
    entropy: float = 0.0
    allowed: tuple[str, ...] = ()
    allowed_matches: tuple[str, ...] = ()
    stopwords: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> Pattern:
        """Compiled on first use. Most rules are never used."""
        spelling = self.regex
        for old, new in _REWRITTEN.items():
            spelling = spelling.replace(old, new)
        return compile_pattern(spelling.encode())

    @cached_property
    def reach(self) -> int:
        return _LONG_REACH_BYTES if _UNLIMITED.search(self.regex) else REACH_BYTES

    def find(self, data: Searched, start: int, end: int) -> Iterator[Finding]:
        """All findings between two places; for a named rule, only one at the first place."""
        while start <= end and (spans := find_groups(self.pattern, data, start, end, anchored=self.named)):
            # As in gitleaks: the group that the rule names, the first group that took part, or the whole match.
            groups = spans[self.group : self.group + 1] if self.group else spans[1:]
            first, last = next((span for span in groups if span[0] >= 0), spans[0])
            found = bytes(data[first:last])
            value = found.strip(_QUOTES)
            if value and not _MARK.match(value) and not self._is_allowed(value, data, *spans[0]):
                first += found.find(value)
                yield Finding(first, first + len(value), self.id, value)
            start = end + 1 if self.named else max(spans[0][1], start + 1)

    def add_window(self, windows: list[list[int]], start: int, end: int, total: int) -> None:
        """Adds the place where it can match. Merges overlapping windows, to search each byte only once."""
        first, last = max(0, start - _BEFORE_BYTES), min(total, end + self.reach)
        if windows and first <= windows[-1][1]:
            windows[-1][1] = last
        else:
            windows.append([first, last])

    def _is_allowed(self, value: bytes, data: Searched, start: int, end: int) -> bool:
        values, words, matches = self._exceptions
        if _measure_entropy(value, self.entropy) < self.entropy or find_groups(values, value, 0, len(value)):
            return True
        if self.sure:
            return False
        return bool(find_groups(words, value, 0, len(value)) or (matches and find_groups(matches, data, start, end)))

    @cached_property
    def _exceptions(self) -> tuple[Pattern, Pattern, Pattern | None]:
        """Patterns for the secret, for its content, and for the whole match."""
        shared = _read_rules("gitleaks.json")
        words = [escape(word.encode()) for word in (*shared.stopwords, *self.stopwords)]
        matches = _join(self.allowed_matches) if self.allowed_matches else None
        return _join((*shared.allowed, *self.allowed)), compile_pattern(b"|".join(words), ignore_case=True), matches


class _RuleFile(Struct, frozen=True):
    rules: tuple[Rule, ...]
    allowed: tuple[str, ...] = ()
    stopwords: tuple[str, ...] = ()


class Shapes:
    """All rules. `filter`: a pattern for the places to look at."""

    def __init__(self) -> None:
        rules = (*_read_rules("own-rules.json").rules, *_read_rules("gitleaks.json").rules)
        words = sorted({word for rule in rules if not rule.named for word in rule.keywords}, key=len, reverse=True)
        # Include the rules of shorter words at the same place, because the filter finds only the longest word.
        self._rules = {word: [rule for rule in rules if word.startswith(rule.keywords)] for word in words}
        self._strict = [(compile_pattern(spelling, ignore_case=True), self._rules[word]) for word, spelling in _FILTERS.items()]
        self._named = [rule for rule in rules if rule.named]
        self._values = NamedValues()
        spelt = (_FILTERS.get(word) or escape(word.encode()) for word in words)
        self.filter = b"(?i:" + b"|".join((*spelt, _NAMED, self._values.filter)) + b")"

    def list_rules(self, found: bytes) -> Sequence[Rule | NamedValues]:
        """The rules for a match of the filter."""
        hit = found.lower().decode("latin-1")
        if (rules := self._rules.get(hit)) is not None:
            return rules
        if rules := [rule for rule in self._named if hit.startswith(rule.keywords)]:
            return rules
        if self._values.begins(hit):
            return [self._values]
        strict = (rules for pattern, rules in self._strict if find_groups(pattern, found, 0, len(found), anchored=True))
        return next(strict, list[Rule]())


@cache
def read_shapes() -> Shapes:
    return Shapes()


@cache
def _read_rules(name: str) -> _RuleFile:
    return msgspec.json.decode(Path(__file__).with_name(name).read_bytes(), type=ready(_RuleFile))


def _join(spellings: tuple[str, ...]) -> Pattern:
    return compile_pattern("|".join(f"(?:{each})" for each in spellings).encode())


def _measure_entropy(value: bytes, least: float) -> float:
    """The Shannon entropy in bits per byte; 0 if there are too few different bytes to reach `least`."""
    different = set(value)
    if len(different) < 2**least:
        return 0.0
    return math.log2(len(value)) - sum(count * math.log2(count) for count in map(value.count, different)) / len(value)
