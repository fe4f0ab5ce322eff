"""Source code, and YAML, plans and descriptions, cut by indentation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Sample, Traits
from overspill.lexical.kinds.lines import find_first, record_long
from overspill.lexical.outline import Outline
from overspill.lexical.words import read_lexicon
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.lines import FILLERS, is_blank, split_lines
from overspill.text.regex import regex

_MAX_BLOCK_BYTES = 900
_CLOSING = frozenset(b")]}")
_BLANK = frozenset(b"\r\n\f\v" + FILLERS)
_YAML = regex(r"\s*+(?:- )?[\w./\"'-]++:(?:\s|$)|\s*+- \S|\s*+#|---$")
_MIN_YAML_SHARE = 0.7
_PATH = r"[\w@+~./-]{0,180}[./][\w-]{1,20}"
_NAMED_FILE = rf"(?i)(?:==> [^\n]{{1,200}} <==|[=#*-]{{3,80}} (?:File:? )?{_PATH} [=#*-]{{3,80}}|(?:#|//) File:? {_PATH})\s*$"
BANNER = regex(_NAMED_FILE.encode())
"""The line above each of several files: `==> src/a.c <==`, `--- src/a.c ---`, `# File: src/a.c`."""
_BANNER = regex(_NAMED_FILE)

_MODIFIERS = (
    r"(?:(?:async|export|default|public|private|protected|internal|static|final|abstract|sealed|pub(?:\(\w+\))?|unsafe|override"
    r"|inline|local) )*"
)
_SURE_CODE = regex(
    r"\s*+(?:"
    + _MODIFIERS
    + r"(?:def|class|import|from|function|const|let|var|package|func|fn|use|return|if|else|elif|for|while|try"
    r"|except|catch|with|struct|impl|enum|trait|interface|type|namespace|using|void|int|bool|string|case|switch|match|public|private"
    r"|static|resource|variable|module|provider)\b"
    r"|#include|@\w+|\}|//|/\*|\*)|\s++[\w.\"\[\]]++\s*+(?:=|\+=|:=)\s|\s++[\w.]++\("
)
_SURE_ENDS = (";", "{")
_LIKELY_CODE = regex(
    r"\s*+(?:"
    + _MODIFIERS
    + r"(?:val|fun|elseif|elsif|rescue|protocol|extension|when|cond|unless|until|my|our|instance|newtype)\b"
    r"|(?:end|fi|done|esac|endif|begin|do|then|where|in)\b[;,.)]*+$|#'|\||--|;;|\(\*|\{-|['\[{(]++[\w:.-])"
    r"|\s*+[\w.$'\[\]]++(?: [\w.$']++){0,20} (?:<-|::|->|=) |\s*+[\w$]++=[\w$\"'(]"
)
"""Code of other languages. Records of programs and lists may have such lines too."""
_LIKELY_END = regex(r"(?:[(=]|->|=>|\bdo|\bthen|\)\)|\|>)$")
_MAX_END_CHARS = 4
"""The longest ending of a line of code that these patterns match."""
_DEFINITION = regex(
    r"\s*+"
    + _MODIFIERS
    + r"(?:\(?def(?:[pn]|un|module|macrop?|var|const|custom|method|generic|struct|protocol|impl|record|once)?"
    r"|class|func?|fn|function|sub|proc|struct|impl|trait|interface|protocol|extension|enum|module|namespace|package|import|from"
    r"|require|include|#include|use|using|open|instance|newtype|\((?:ns|require|provide)|let rec)"
    r"\b(?! (?:the|a|an|this|of|it)\b)[^.?!]*+(?:[.?!]\S[^.?!]*+)*+$"
    r"|[\w.]++ (?:<-|=) function\(|[a-z][\w']*+ :: |[\w-]++ ?\(\)(?: ?\{)?$|\s*+(?:local|my) [\w$@%(][\w$@%, ]*+\)? ="
)
"""A line that occurs only in source code: it defines or imports something, and is not a sentence."""
_MIN_SURE_SHARE, _MIN_SURE_SHARE_AMONG_WORDS = 0.45, 0.65
_MANY_DEFINITIONS, _MIN_LIKELY_SHARE_WITH_MANY = 0.05, 0.4
_FEW_DEFINITIONS = 0.015


def is_source(sample: Sample) -> bool:
    """Decides by the lines outside fences, or because the text begins with a file name and most such names are source files."""
    names = [line for line in sample.lines if _BANNER.match(line)]
    parts = (name.rstrip("=<*#- \t").rpartition(".") for name in names)
    of_source = sum(bool(stem) and suffix.lower() in read_lexicon("source") for stem, _, suffix in parts)
    if names[:1] == sample.lines[:1] and of_source > len(names) / 2:
        return True
    lines = sample.unfenced
    ends = [line.rstrip()[-_MAX_END_CHARS - 1 :] for line in lines]
    sure = [end.endswith(_SURE_ENDS) or _SURE_CODE.match(line) is not None for line, end in zip(lines, ends, strict=True)]
    share = sum(sure) / max(1, len(lines))
    if share > _MIN_SURE_SHARE_AMONG_WORDS or (share > _MIN_SURE_SHARE and not sample.is_wordy):
        return True
    likely = (
        is_sure or bool(_LIKELY_CODE.match(line) or _LIKELY_END.search(end))
        for is_sure, line, end in zip(sure, lines, ends, strict=True)
    )
    return has_definitions(sample) and sum(likely) > _MIN_LIKELY_SHARE_WITH_MANY * len(lines)


def has_definitions(sample: Sample) -> bool:
    return sample.share(_DEFINITION.match, sample.unfenced) > _MANY_DEFINITIONS


def defines(sample: Sample) -> bool:
    """Whether some lines occur only in source code."""
    return sample.share(_DEFINITION.match, sample.unfenced) > _FEW_DEFINITIONS


def _cut_blocks(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A line and everything indented under it is a block. A block that is too large becomes a label above smaller ones."""
    lines = list(_read_lines(text, start, end))
    ends = _find_block_ends(lines)
    banners = [number for number, (a, b, indent) in enumerate(lines) if not indent and BANNER.match(text, a, b)]
    for first, last in pairwise((-1, *banners, len(lines))):
        label = -1
        if first >= 0:
            label = outline.label(*lines[first][:2])
            outline.record(*lines[first][:2], label)
        _cut_file(text, lines, ends, (first + 1, last, label), outline)


def _read_lines(text: Text, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The start, end and indentation of each line that is not blank.

    A line that starts with a closing bracket counts as indented, so `) -> int:` and the body stay with their `def`.
    """
    has_tabs = pieces.find(text, b"\t", start, end) >= 0
    for lines in split_lines(text, start, end):
        for line, bare in zip(lines, map(bytes.lstrip, lines, repeat(b" \t")), strict=True):
            first, start = start, start + len(line)
            if not bare or (bare[0] in _BLANK and is_blank(bare)):
                continue
            indent = len(line) - len(bare)
            if has_tabs and indent:
                indent = len(line[:indent].expandtabs(4))
            yield first, start, indent + (bare[0] in _CLOSING)


def _cut_file(
    text: Text, lines: list[tuple[int, int, int]], ends: list[int], file: tuple[int, int, int], outline: Outline
) -> None:
    stack = [file]
    while stack:
        first, last, label = stack.pop()
        pending = first
        index = first
        while index < last:
            below = min(ends[index], last)
            if lines[below - 1][1] - lines[index][0] > _MAX_BLOCK_BYTES and below - index > 1:
                _record_lines(text, lines[pending:index], label, outline)
                inner = outline.label(lines[index][0], lines[index][1], label)
                outline.record(lines[index][0], lines[index][1], label)
                stack.append((below, last, label))
                stack.append((index + 1, below, inner))
                pending = last
                break
            follows_blank_line = index > first and lines[index - 1][1] < lines[index][0]
            if pending < index and (follows_blank_line or lines[below - 1][1] - lines[pending][0] > _MAX_BLOCK_BYTES):
                _record_lines(text, lines[pending:index], label, outline)
                pending = index
            index = below
        _record_lines(text, lines[pending:last], label, outline)


def _find_block_ends(lines: list[tuple[int, int, int]]) -> list[int]:
    """For each line, the index of the next line that is not indented under it."""
    extents = [len(lines)] * len(lines)
    waiting: list[int] = []
    for index, (_, _, indent) in enumerate(lines):
        while waiting and lines[waiting[-1]][2] >= indent:
            extents[waiting.pop()] = index
        waiting.append(index)
    return extents


def _record_lines(text: Text, lines: list[tuple[int, int, int]], label: int, outline: Outline) -> None:
    if lines:
        record_long(text, (lines[0][0], lines[-1][1]), 2 * _MAX_BLOCK_BYTES, outline, label)


CODE = Kind(
    "code",
    is_source,
    _cut_blocks,
    Traits(is_code=True, has_definitions=True, has_topics=True, has_telling_lines=True, memory_per_byte=9, layout="definitions"),
)
_STARTS = regex(rb"\n[^\S\n]*+\n(?=[^\s)}\]])"), regex(rb"\n(?=[^\s)}\]])"), regex(rb"\n")
DESCRIPTION = Kind(
    "yaml",
    lambda sample: sample.share(_YAML.match) > _MIN_YAML_SHARE,
    _cut_blocks,
    Traits(is_code=True, has_definitions=True, is_program_output=True, has_telling_lines=True, memory_per_byte=9),
    find_start=find_first(*_STARTS),
)
