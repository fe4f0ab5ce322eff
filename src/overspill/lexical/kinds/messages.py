"""Mail and forum threads: paragraphs of messages, under who wrote them and about what."""

from __future__ import annotations

import re
from itertools import islice

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.paragraphs import Paragraphs
from overspill.tables.table import Text
from overspill.text.lines import is_blank, iterate_lines

_MAX_PARAGRAPH_BYTES = 500
"""A longer paragraph is cut between sentences, so that a small budget holds several of them."""
_SIGNED = re.compile(
    rb"(?:From \S++ +\w{3},? .{0,30}\d{4}"
    rb"|[^\W\d_][^\s,<>]*+(?:,? [^\s,<>]++){0,5}(?: <[^<>\n]{3,80}>)?,? [^\n]{0,40}"
    rb"\d{4}[^\n]{0,12}?\d{1,2}:\d{2}[^\n]{0,12}:)\s*+$"
)
"""How an archive begins a message: `From a@b Mon Jan 5 02:02:00 2009`, or `Ann Lee, 2010-01-05 02:02:`."""
_HEADER = re.compile(rb"(?:From|Date|Sent|To|Cc|Subject|Message-ID|In-Reply-To|References|Reply-To): \S", re.IGNORECASE)
_THREAD = re.compile(
    rb"(?:Thread|Topic|Title|Issue|Ticket|Bug|Discussion|Conversation|Merge request|Pull request)"
    rb"(?::\s{1,8}\S| #?\d{1,10}\b[^\n.]{0,40}$)",
    re.IGNORECASE,
)
"""How a thread begins: `Thread: Slow queries`, or `Issue 12 (closed)` and `Title: Slow queries`."""
_NUMBERED = re.compile(rb"(?:#{1,6} |={2,6} ?)?(?:[A-Z][A-Z0-9]{1,9}-|[#!])\d{1,10}(?: {0,2}[\[(][^\])\n]{1,40}[\])])?:?[ =]*$")
"""How a tracker begins an issue: `#12 (closed)`, or `ABC-12`. It is one only if a message or a title follows."""
_QUOTED = re.compile(rb"[>|]")
_MIN_MESSAGES = 3
_MAX_MESSAGES_SHARE = 0.5
"""If more lines begin a message, these are the entries of a log."""
_MAX_HEADING_BYTES = 400
"""Of all lines at the beginning of a thread."""
_MAX_LINES_BELOW_NUMBER = 4
_THREAD_DEPTH = 1
"""A message is one deeper."""
_MIN_HEADERS = 3
"""Lines of a header that follow each other begin a message."""


def are_messages(sample: Sample) -> bool:
    lines = [line.encode("utf-8", "replace") for line in sample.lines]
    messages, headers = 0, 0
    for line in lines:
        headers = headers + 1 if _HEADER.match(line) else 0
        messages += headers == _MIN_HEADERS or _SIGNED.match(line) is not None
    return _MIN_MESSAGES <= messages <= _MAX_MESSAGES_SHARE * len(lines)


def _cut_messages(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """What is quoted from another message is a record by itself. Number and title of a thread may take a line each."""
    archive = Paragraphs(text, outline, _MAX_PARAGRAPH_BYTES)
    was_quoted = is_header = is_title = False
    for line_start, line_end in iterate_lines(text, start, end):
        line = text[line_start:line_end]
        continues_header, is_header = is_header, _HEADER.match(line) is not None
        continues_title, is_title = is_title, False
        is_quoted = _QUOTED.match(line) is not None
        if is_blank(line) or is_blank(line.lstrip(b">| ")):
            archive.end_paragraph()
        elif (archive.opened < 0 or continues_title) and (_THREAD.match(line) or _begins_issue(text, line_start, line_end, end)):
            is_title = True
            if continues_title and line_end - archive.opened <= _MAX_HEADING_BYTES:
                outline.label_ends[archive.label] = archive.closed = line_end
            else:
                archive.heading(line_start, line_end, _THREAD_DEPTH)
        elif _SIGNED.match(line) or (is_header and not continues_header):
            archive.heading(line_start, line_end, _THREAD_DEPTH + 1)
        else:
            if is_quoted != was_quoted:
                archive.end_paragraph()
            archive.line(line_start, line_end)
        was_quoted = is_quoted
    archive.end_paragraph()


def _begins_issue(text: Text, start: int, end: int, limit: int) -> bool:
    """Whether a line is a number above the title or the first message of an issue."""
    if not _NUMBERED.match(text, start, end):
        return False
    for line_start, line_end in islice(iterate_lines(text, end, limit), _MAX_LINES_BELOW_NUMBER):
        line = text[line_start:line_end]
        if not is_blank(line):
            return bool(_THREAD.match(line) or _SIGNED.match(line) or _HEADER.match(line))
    return False


MESSAGES = Kind(
    "messages",
    are_messages,
    _cut_messages,
    Traits(is_running_text=True, has_context=True, has_topics=True, has_replies=True, memory_per_byte=2),
)
