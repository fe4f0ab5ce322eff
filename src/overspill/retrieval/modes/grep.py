"""Mode `grep`: lines that match a pattern."""

from __future__ import annotations

import json
from collections.abc import Callable

from overspill import reading
from overspill.errors import BadRequest
from overspill.reading import Bound
from overspill.retrieval.definitions import GetToolOutput
from overspill.retrieval.modes import ExactMode
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import FOOTER_BYTES, Page, make_page, shrink
from overspill.text import encoding
from overspill.wording import retrieval as wording
from overspill.wording.names import tool_name


def grep_page(stored: StoredOutput, asked: GetToolOutput, bound: Bound, spell: Callable[[int], str]) -> tuple[Page, bool]:
    """The page, and whether anything matches. `spell` writes the call that continues from a byte."""
    pattern, text = asked.pattern or "", stored.decoded()
    notes = wording.decoding_notes(text.decoding)
    found = reading.grep(
        text.reader,
        text.positions,
        pattern,
        shrink(bound, FOOTER_BYTES + len(encoding.encode(pattern)) + len("\n".join(notes))),
        context=asked.context,
        ignore_case=asked.ignore_case,
        start_byte=asked.from_,
    )
    searched = (found.searched_from, found.searched_to)
    footer = wording.grep_place(found.hits, found.total, found.exact, searched, text.reader.size, is_cut=found.is_cut)
    if found.next is not None:
        footer += f" Next: {spell(found.next)}"
    return make_page(stored, found.text, [f"[{footer}]", *notes]), bool(found.total)


def _read(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    if not asked.pattern:
        raise BadRequest("Pattern required for grep mode.")
    options = f", context={asked.context}" + (", ignore_case=true" if asked.ignore_case else "")
    call = f'{tool_name("get_tool_output")}(id="{stored.shown_id}", mode="grep", pattern={json.dumps(asked.pattern)}{options}'
    return grep_page(stored, asked, bound, lambda start: f"{call}, from={start})")[0]


GREP = ExactMode(read=_read, reads_running=True, reads_binary=True)
