"""Finds secrets by their names: `PASSWORD=value`, `"api_key": "value"`, `--token value` and the like."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from string import ascii_letters, digits

from msgspec import Struct

from overspill.redaction.finding import Finding
from overspill.redaction.names import is_harmless, is_more_than_a_word, looks_random, read_meaning, read_words
from overspill.text.patterns import Pattern, Searched, compile_pattern, find_groups
from overspill.text.regex import regex

_NAME_BYTES, _HEADER_BYTES, _HEAD_BYTES, _JUDGED_BYTES = 64, 512, 320, 512
"""How far to look for the end of a name, for "cookie", and for the beginning of a value, and how much of a value to judge."""
_WORD = (ascii_letters + digits + "_.-").encode()
_KEYWORDS = ("pass", "pwd", "psk", "secret", "token", "cred", "auth", "sess", "jwt")
_OPENER_CHARS = 16
_NAME = (
    rb"(?:pass(?:w(?:or)?d|phrase|code)?|pwd|psk|secret|token|\wkey|[_.-]key|cred(?:ential)?s?|auth|jwt|sess(?:ion)?(?:[_.-]?id)?"
    rb"|(?:%b) key)(?:[_.-]?(?:%b))?(?:[ _.-]?[0-9]{1,2}|[_.-][a-z])?"
)
"""Matches only at the end of a name, so that `token_count=7` and `key=value` cost nothing."""
_SIGN = rb"[\\'\"\x60\])]{0,6}[ \t]{0,40}(?:=>|[:=?|]{1,3}|[,>])[ \t]{0,40}"
_FIELD = rb"[\\'\"]{0,6}(?::\s{0,8}\{[^{}]{0,160}|[\s,]{1,60})[\\'\"]{0,6}value[\\'\"]{0,6}\s{0,8}[:=]\s{0,8}"
"""The text between a name and its value in two fields, as in `{"name": "API_TOKEN", "value": "…"}`."""
_SPACE = rb"[ \t]{1,60}"
_PREFIX = rb"[bBfFnNrRuU@]?"
"""The prefix of a string in a programming language."""
_BARE = rb"[^\s'\"\x60<>(){}\[\]\\]{6"
_BEGINNING = rb"[\\'\"\x60]{0,6}%b}|%b(?:['\"][^\s'\"]{6}|[^\s'\"(]{0,15}(?:[0-9]|(?-i:[a-z][A-Z])))" % (_BARE, _SPACE)
_QUOTE = rb"%b\\*['\"\x60]" % _PREFIX
_INSIDE = {
    b"": rb"[^\s'\"\x60<>(){}\[\]\\]*",
    b'"': rb'(?:[^"\\\r\n]|\\.)*',
    b"'": rb"(?:[^'\\\r\n]|\\.)*",
    b"`": rb"[^\x60\r\n]*",
    b"\\": rb"[^\"'\\\r\n]*",
}
"""A pattern for the content of values, by the quotes around them."""
_OTHERS = ("key", "Key", "KEY", "PASS", "PWD")
"""Names that are not secrets' names: keys of maps, results of tests, and the working directory."""
_SESSION = regex(r"(?i)[\w.-]*sess(?:ion)?[_.-]?(?:id)?")
_TEMPLATE = regex(
    rb"(?s)[A-Za-z_]+(?:(?:\.|::|->)[A-Za-z_]+)+|\$\{?[\w.:?@-]+\}?|\$?\{\{.*"
    rb"|[<#%]\(?[^<>]*[>)]s?|%\w+%|#\{.*|\W*|.*(?:://|\[redacted:|[xX]{5}|\*{3}).*"
)
_NO_PASSWORD = regex(
    rb"(?s)[A-Za-z]\w*(?:(?:\.|::|->)\w+)+|[A-Z0-9_]+|[\d.:,%e+-]+|%.*|.*[/: ].*"
    rb"|(?i:.*(?:change.?me|replace|example|placeholder|your|dummy|redacted|masked|here).*)"
)
_NEXT = regex(rb"[&;,](?:[\w.%-]{1,40}[=:]|\Z)")


class _Value(Struct, frozen=True):
    """`sign`: the text between name and value, if not only spaces. `rest`: matches the rest of a value longer than `text`."""

    text: bytes
    start: int
    rest: Pattern | None
    quote: bytes
    sign: bytes


class NamedValues:
    """Has the same interface as the rules for shapes."""

    reach = 64 << 10

    def __init__(self) -> None:
        words = read_words()
        self._name = _NAME % tuple("|".join(sorted(each)).encode() for each in (words.openers, words.suffixes))
        self.filter = rb"%b(?:(?:%b|%b)%b%b)" % (self._name, _FIELD, _SIGN, _PREFIX, _BEGINNING)
        """Matches the name and the beginning of its value."""

    @cached_property
    def _heads(self) -> tuple[Pattern, Pattern]:
        """Patterns for a name and the text before its value. The first is for a name in one field with its value in the next."""
        spellings = (rb"(?i)%b(%b)" % (self._name, _FIELD), rb"(?i)%b(?:(%b)|%b)" % (self._name, _SIGN, _SPACE))
        return compile_pattern(spellings[0]), compile_pattern(spellings[1])

    @cached_property
    def _inside(self) -> dict[bytes, Pattern]:
        return {quote: compile_pattern(spelling) for quote, spelling in _INSIDE.items()}

    @cached_property
    def _quote(self) -> Pattern:
        return compile_pattern(_QUOTE)

    def begins(self, found: str) -> bool:
        """Whether a match of the filter is the name of a value."""
        return found.startswith(_KEYWORDS) or found.find("key", 0, _OPENER_CHARS) > 0

    def find(self, data: Searched, start: int, end: int) -> Iterator[Finding]:
        """The secret value after a name whose keyword begins at `start`."""
        value = self._read_value(data, start, end)
        before = bytes(data[max(0, start - _NAME_BYTES) : start])
        if value is None or (value.sign == b":" and before.rstrip(_WORD).endswith((b":", b"/"))):  # the slash of a path
            return
        name = _read_name(before, bytes(data[start : value.start - len(value.quote) - len(value.sign)]))
        meaning = None if name in _OTHERS or is_harmless(name) else read_meaning(name)
        if value.sign == b"=" and _SESSION.fullmatch(name):
            meaning = "secret" if b"cookie" in bytes(data[max(0, start - _HEADER_BYTES) : start]).lower() else None
        text = value.text
        if meaning is None or _TEMPLATE.fullmatch(text):
            return
        is_assigned = b"," not in value.sign if value.sign else bool(value.quote) or before.endswith(b"--")
        is_password = meaning == "password" and is_assigned and is_more_than_a_word(text) and not _NO_PASSWORD.fullmatch(text)
        if is_password or looks_random(text, meaning):
            last = value.start + len(text)
            if value.rest:
                last = find_groups(value.rest, data, value.start, end, anchored=True)[0][1]
            kind = "password" if meaning == "password" else "secret"
            yield Finding(value.start, last, kind, bytes(data[value.start : last]), rank=2)

    def _read_value(self, data: Searched, start: int, end: int) -> _Value | None:
        head = bytes(data[start : min(end, start + _HEAD_BYTES)])
        is_field = b"value" in head.lower()
        spans = is_field and find_groups(self._heads[0], head, 0, len(head), anchored=True)
        spans = spans or find_groups(self._heads[1], head, 0, len(head), anchored=True)
        if not spans:
            return None
        first, sign = start + spans[0][1], head[slice(*spans[1])] if spans[1][0] >= 0 else b""
        quoted = find_groups(self._quote, data, first, end, anchored=True)
        quote = bytes(data[slice(*quoted[0])]) if quoted else b""
        first += len(quote)
        inside = self._inside[b"\\" if b"\\" in quote else quote[-1:]]
        last = find_groups(inside, data, first, min(end, first + _JUDGED_BYTES), anchored=True)[0][1]
        is_whole, text = last < first + _JUDGED_BYTES, bytes(data[first:last])
        if not quote:
            if following := _NEXT.search(text):  # another value follows, as in a list, a URL or a connection string
                is_whole, text = True, text[: following.start()]
            elif b"," in sign or bytes(data[last : last + 1]) in (b"(", b"[", b"{"):  # part of an expression in code
                return None
            text = text.rstrip(b".,:;&")
        return _Value(text, first, None if is_whole else inside, quote, sign)


def _read_name(before: bytes, rest: bytes) -> str:
    """The whole name. If it has a space in it, as in "API key", this includes the word before the space."""
    other = before.rstrip(_WORD)
    name = before[len(other) :] + rest
    word = other[:-1][len(other[:-1].rstrip(_WORD)) :] if other.endswith(b" ") else b""
    words = read_words()
    if word.decode("latin-1").lower() in words.harmless_tokens | words.harmless_keys:
        name = word + b"_" + name
    return name.rstrip(b" \t").replace(b" ", b"_").decode("latin-1").strip("-_.")
