"""Mode `query`: a JSON pointer or a JMESPath expression."""

from __future__ import annotations

import json
from collections.abc import Callable

from overspill.errors import BadRequest
from overspill.reading import Bound
from overspill.reading.query import query
from overspill.retrieval.definitions import GetToolOutput
from overspill.retrieval.modes import ExactMode
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import FOOTER_BYTES, Page, make_page, shrink
from overspill.text import encoding
from overspill.wording import framing
from overspill.wording import retrieval as wording
from overspill.wording.names import tool_name


def query_page(stored: StoredOutput, expression: str, start: int, bound: Bound, spell: Callable[[int], str]) -> Page:
    """`spell` writes the call that continues from a character."""
    text = stored.decoded()
    notes = list(wording.decoding_notes(text.decoding))
    found = query(text.reader, expression, bound, start=start)
    if notes or found.next is not None or found.expanded or found.note or framing.imitates(found.text):
        room = FOOTER_BYTES + len(encoding.encode(expression)) + len("\n".join(notes))
        found = query(text.reader, expression, shrink(bound, room), start=start)
    notes += [f"[{found.note}]"] if found.note else []
    if found.expanded:
        notes.append(wording.EXPANDED)
    if found.text == "null":
        notes.append(wording.NULL)
    if found.next is not None:
        notes.append(wording.continuation(spell(found.next)))
    return make_page(stored, found.text, notes)


def _read(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    expression = asked.query
    if not expression:
        raise BadRequest("Query required for query mode.")

    def spell(start: int) -> str:
        quoted = json.dumps(expression)
        return f'{tool_name("get_tool_output")}(id="{stored.shown_id}", mode="query", query={quoted}, from={start})'

    return query_page(stored, expression, asked.from_, bound, spell)


QUERY = ExactMode(read=_read, reads_binary=True)
