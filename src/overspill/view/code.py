"""Source code in colours: comments, strings, numbers and the words that most languages share, each line by itself.

Libraries for this read the grammar of each language, with patterns that hostile text can keep busy for as long as it likes.
Here, each character is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import escape

_STRINGS_NUMBERS_WORDS = r"|(?P<s>\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?)|(?P<n>\d[\w.]*)|(?P<w>[^\W\d]\w*)"
_WITH_HASHES = re.compile(r"(?P<c>\#.*)" + _STRINGS_NUMBERS_WORDS)
_WITH_SLASHES = re.compile(r"(?P<c>//.*|/\*.*?(?:\*/|$))" + _STRINGS_NUMBERS_WORDS)
_ENDS = (";", "{", "}", "},", "*/")
"""How lines end in languages whose comments begin with slashes."""
_MIN_SHARE = 4
"""One line in so many has to end like that."""
_WORDS = """
abstract and as assert async await break case catch class const continue def default defer del delete do elif else end
enum except export extends extern False false final finally fn for foreach from func function global go goto if impl
implements import in include inline instanceof interface is lambda let loop match module mut namespace new nil None
nonlocal not null or override package pass private protected pub public raise require return select self static struct
super switch this throw throws trait true True try type typeof undefined union unsafe use using var virtual void
volatile where while with yield
"""
_KNOWN = frozenset(_WORDS.split())


def find_comments(lines: Sequence[str]) -> re.Pattern[str]:
    """The pattern for these lines of one program, by how its comments begin."""
    count = sum(line.rstrip().endswith(_ENDS) for line in lines)
    return _WITH_SLASHES if count * _MIN_SHARE > len(lines) else _WITH_HASHES


def color_code(pattern: re.Pattern[str], text: str) -> str:
    """The text as HTML, all of it escaped."""
    pieces, at = list[str](), 0
    for found in pattern.finditer(text):
        kind = found.lastgroup
        if kind == "w" and found[0] not in _KNOWN:
            continue
        pieces += (escape(text[at : found.start()]), f'<span class="code-{kind}">{escape(found[0])}</span>')
        at = found.end()
    return "".join([*pieces, escape(text[at:])])
