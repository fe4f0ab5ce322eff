"""How lines of source code look, in whatever language, and what tells files of it from documents with examples in them."""

from __future__ import annotations

import re

from overspill.lexical.kinds.sample import Sample
from overspill.lexical.words import read_lexicon

_PATH = r"[\w@+~./-]{0,180}[./][\w-]{1,20}"
_NAMED_FILE = rf"(?:==> [^\n]{{1,200}} <==|[=#*-]{{3,80}} (?:File:? )?{_PATH} [=#*-]{{3,80}}|(?:#|//) File:? {_PATH})\s*$"
BANNER = re.compile(_NAMED_FILE.encode(), re.IGNORECASE)
"""What commands and people put above each of several files: `==> src/a.c <==`, `--- src/a.c ---`, `# File: src/a.c`."""
_BANNER = re.compile(_NAMED_FILE, re.IGNORECASE)

_MODIFIERS = (
    r"(?:(?:async|export|default|public|private|protected|internal|static|final|abstract|sealed|pub(?:\(\w+\))?|unsafe|override"
    r"|inline|local) )*"
)
_SURE_CODE = re.compile(
    r"\s*+(?:"
    + _MODIFIERS
    + r"(?:def|class|import|from|function|const|let|var|package|func|fn|use|return|if|else|elif|for|while|try"
    r"|except|catch|with|struct|impl|enum|trait|interface|type|namespace|using|void|int|bool|string|case|switch|match|public|private"
    r"|static|resource|variable|module|provider)\b"
    r"|#include|@\w+|\}|//|/\*|\*)|\s++[\w.\"\[\]]++\s*+(?:=|\+=|:=)\s|\s++[\w.]++\("
)
_SURE_ENDS = (";", "{")
_LIKELY_CODE = re.compile(
    r"\s*+(?:"
    + _MODIFIERS
    + r"(?:val|fun|elseif|elsif|rescue|protocol|extension|when|cond|unless|until|my|our|instance|newtype)\b"
    r"|(?:end|fi|done|esac|endif|begin|do|then|where|in)\b[;,.)]*+$|#'|\||--|;;|\(\*|\{-|['\[{(]++[\w:.-])"
    r"|\s*+[\w.$'\[\]]++(?: [\w.$']++){0,20} (?:<-|::|->|=) |\s*+[\w$]++=[\w$\"'(]"
)
"""Code of further languages. Records of programs and lists may have such lines too."""
_LIKELY_END = re.compile(r"(?:[(=]|->|=>|\bdo|\bthen|\)\)|\|>)$")
_MAX_END_CHARS = 4
"""Of what a line of code may end with."""
_DEFINITION = re.compile(
    r"\s*+"
    + _MODIFIERS
    + r"(?:\(?def(?:[pn]|un|module|macrop?|var|const|custom|method|generic|struct|protocol|impl|record|once)?"
    r"|class|func?|fn|function|sub|proc|struct|impl|trait|interface|protocol|extension|enum|module|namespace|package|import|from"
    r"|require|include|#include|use|using|open|instance|newtype|\((?:ns|require|provide)|let rec)"
    r"\b(?! (?:the|a|an|this|of|it)\b)[^.?!]*+(?:[.?!]\S[^.?!]*+)*+$"
    r"|[\w.]++ (?:<-|=) function\(|[a-z][\w']*+ :: |[\w-]++ ?\(\)(?: ?\{)?$|\s*+(?:local|my) [\w$@%(][\w$@%, ]*+\)? ="
)
"""A line that only source code has: it defines or imports something, and is no sentence."""
_MIN_SURE_SHARE, _MIN_SURE_SHARE_AMONG_WORDS = 0.45, 0.65
_MANY_DEFINITIONS, _MIN_LIKELY_SHARE_WITH_MANY = 0.05, 0.4
_FEW_DEFINITIONS = 0.015


def is_source(sample: Sample) -> bool:
    """By its lines, whatever is between fences, or because it begins with the name of a source file."""
    if _are_source_files(sample.lines):
        return True
    lines = sample.unfenced
    ends = [line.rstrip()[-_MAX_END_CHARS - 1 :] for line in lines]
    sure = [end.endswith(_SURE_ENDS) or _SURE_CODE.match(line) is not None for line, end in zip(lines, ends, strict=True)]
    likely = sum(
        is_sure or bool(_LIKELY_CODE.match(line) or _LIKELY_END.search(end))
        for is_sure, line, end in zip(sure, lines, ends, strict=True)
    )
    defining = sum(_DEFINITION.match(line) is not None for line in lines)
    total = max(1, len(lines))
    if sum(sure) > (_MIN_SURE_SHARE_AMONG_WORDS if sample.is_wordy else _MIN_SURE_SHARE) * total:
        return True
    return defining > _MANY_DEFINITIONS * total and likely > _MIN_LIKELY_SHARE_WITH_MANY * total


def _are_source_files(lines: list[str]) -> bool:
    """Whether the text begins with the name of a source file, and most names of files in it are such names."""
    names = [line for line in lines if _BANNER.match(line)]
    return names[:1] == lines[:1] and sum(map(_names_source, names)) > len(names) / 2


def _names_source(banner: str) -> bool:
    name, dot, suffix = banner.rstrip("=<*#- \t").rpartition(".")
    return bool(name and dot) and suffix.lower() in read_lexicon("source")


def has_definitions(sample: Sample) -> bool:
    return sample.share(_DEFINITION.match, sample.unfenced) > _MANY_DEFINITIONS


def defines(sample: Sample) -> bool:
    """Whether source code has some of its lines, whatever the others are."""
    return sample.share(_DEFINITION.match, sample.unfenced) > _FEW_DEFINITIONS
