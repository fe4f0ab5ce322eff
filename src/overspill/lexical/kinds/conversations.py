"""Mail, forum threads, chats and transcripts: what people say to each other."""

from __future__ import annotations

from collections import Counter

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Sample, Traits
from overspill.lexical.kinds.lines import Paragraphs
from overspill.lexical.outline import Outline
from overspill.tables.table import Text
from overspill.text.encoding import decode
from overspill.text.lines import is_blank, iterate_lines
from overspill.text.regex import regex

_MAX_PARAGRAPH_BYTES = 500
"""A longer paragraph is cut between sentences, to fit several into a small budget."""
_SIGNED = regex(
    rb"(?:From \S++ +\w{3},? .{0,30}\d{4}"
    rb"|[^\W\d_][^\s,<>]*+(?:,? [^\s,<>]++){0,5}(?: <[^<>\n]{3,80}>)?,? [^\n]{0,40}"
    rb"\d{4}[^\n]{0,12}?\d{1,2}:\d{2}[^\n]{0,12}:)\s*+$"
)
"""The line that begins a message in an archive: `From a@b Mon Jan 5 02:02:00 2009`, or `Ann Lee, 2010-01-05 02:02:`."""
_MAY_SIGN = ":0123456789"
"""What such a line ends with."""
_HEADER = regex(rb"(?i)(?:From|Date|Sent|To|Cc|Subject|Message-ID|In-Reply-To|References|Reply-To): \S")
_THREAD = regex(
    rb"(?i)(?:Thread|Topic|Title|Issue|Ticket|Bug|Discussion|Conversation|Merge request|Pull request)"
    rb"(?::\s{1,8}\S| #?\d{1,10}\b[^\n.]{0,40}$)",
)
"""The beginning of a thread: `Thread: Slow queries`, or `Issue 12 (closed)` and `Title: Slow queries`."""
_QUOTES = (b">", b"|")
_MIN_MESSAGES = 3
_MAX_MESSAGES_SHARE = 0.5
"""With a larger share of such lines, they are the entries of a log."""
_THREAD_DEPTH = 1
"""A message is one level deeper."""
_MIN_HEADERS = 3
"""This many consecutive header lines begin a message."""


def are_messages(sample: Sample) -> bool:
    messages, headers = 0, 0
    for line in sample.lines:
        headers = headers + 1 if ": " in line and _HEADER.match(_encode(line)) else 0
        messages += headers == _MIN_HEADERS or (line.rstrip()[-1:] in _MAY_SIGN and _SIGNED.match(_encode(line)) is not None)
    return _MIN_MESSAGES <= messages <= _MAX_MESSAGES_SHARE * len(sample.lines)


def _encode(line: str) -> bytes:
    return line.encode("utf-8", "replace")


def _cut_messages(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """Text quoted from another message is a separate record."""
    archive = Paragraphs(text, outline, _MAX_PARAGRAPH_BYTES)
    was_quoted = is_header = False
    may_sign = _MAY_SIGN.encode()
    for line_start, line_end in iterate_lines(text, start, end):
        line = text[line_start:line_end]
        continues_header, is_header = is_header, b": " in line and _HEADER.match(line) is not None
        is_quoted = line[:1] in _QUOTES
        if is_blank(line.lstrip(b">| ")):
            archive.end_paragraph()
        elif archive.opened < 0 and _THREAD.match(line):
            archive.heading(line_start, line_end, _THREAD_DEPTH)
        elif (line.rstrip()[-1:] in may_sign and _SIGNED.match(line)) or (is_header and not continues_header):
            archive.heading(line_start, line_end, _THREAD_DEPTH + 1)
        else:
            if is_quoted != was_quoted:
                archive.end_paragraph()
            archive.line(line_start, line_end)
        was_quoted = is_quoted
    archive.end_paragraph()


MESSAGES = Kind(
    "messages",
    are_messages,
    _cut_messages,
    Traits(is_running_text=True, has_context=True, has_topics=True, has_replies=True, memory_per_byte=2),
)


_MAX_TURN_BYTES = 500
"""A longer turn is cut between sentences: a speech answers a question with a few of them."""
_NICK = regex(r"(?:\W{0,2}(?:\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d{2}(?::\d{2})?\W{0,3} ?)?<[^<>\s]{1,40}> ")
"""`[12:18] <nick> `, as chat clients write it."""
_STAMPED = regex(
    r"(?:\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4}, \d{1,2}:\d{2}(?::\d{2})?(?:[ \u202f][AaPp][Mm])?\]?(?: -)? )([^:\n]{1,40}): \S"
)
"""`[06.01.2024, 16:43:00] Ann: ` and `1/6/24, 4:43 PM - Ann: `, as phones export chats."""
_SPEAKER = regex(
    # Programs write a time of day in brackets too, but what follows is a level or begins with a small letter.
    r"(?:[\[(](?=[^\])\n]{0,30}\d:\d\d)[^\])\n]{4,40}[\])](?: -)? "
    r"(?!(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b))?+"
    r"([^\W\d_a-z][\w.'’#-]*+(?: [^\W\d_][\w.'’-]*+| \([^()\n]{1,40}\)){0,4}): \S"
)
"""`Ann Lee: `, and `[4:43 pm on 6 January, 2024] Ann Lee: `."""
_MIN_TURNS_SHARE, _MAX_INDENTED_SHARE = 0.6, 0.05
_MIN_SPEAKERS, _MIN_TURNS_PER_SPEAKER = 2, 3
"""Names before colons are speakers if they are few and recur; otherwise they are keys or terms."""
_HEADING = regex(r"(#{1,6}|={2,6})[ \t]{1,4}[^\s#=][^\n]{0,200}$")
"""A heading as marked in Markdown and wikis."""
_MAX_BEGINNING_BYTES = 200
_MIN_TURN_CHARS = 30
"""The average length of what speakers say; values of keys are shorter."""


def _are_turns(sample: Sample) -> bool:
    lines = sample.lines
    if sample.share(_NICK.match) > _MIN_TURNS_SHARE:
        return True
    names = _count_speakers(sample)
    return (
        names.total() > _MIN_TURNS_SHARE * len(lines)
        and _are_speakers(names)
        and sample.is_wordy
        and sum(line[:1].isspace() for line in lines) <= _MAX_INDENTED_SHARE * len(lines)
        and sum(map(len, lines)) >= _MIN_TURN_CHARS * len(lines)
    )


def _count_speakers(sample: Sample) -> Counter[str]:
    """How many lines begin with each name and a colon."""
    return Counter(found[1] for line in sample.lines if ": " in line and (found := _STAMPED.match(line) or _SPEAKER.match(line)))


def _are_speakers(names: Counter[str]) -> bool:
    return _MIN_SPEAKERS <= len(names) <= names.total() / _MIN_TURNS_PER_SPEAKER


def _cut_turns(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A heading shares a record with the turn right below it, which may be all there is on the topic."""
    said = Paragraphs(text, outline, _MAX_TURN_BYTES)
    is_heading = False
    for line_start, line_end in iterate_lines(text, start, end):
        line = decode(bytes(text[line_start : min(line_end, line_start + _MAX_BEGINNING_BYTES)]))
        if not line.strip():
            if not is_heading:
                said.end_paragraph()
            continue
        marked = _HEADING.match(line)
        if marked:
            said.heading(line_start, line_end, len(marked[1]))
        else:
            if not is_heading and (_NICK.match(line) or _STAMPED.match(line) or _SPEAKER.match(line)):
                said.end_paragraph()
            said.line(line_start, line_end)
        is_heading = marked is not None
    said.end_paragraph()


TURNS = Kind("turns", _are_turns, _cut_turns, Traits(is_running_text=True, has_context=True, has_topics=True, memory_per_byte=2))
