"""Mode `raw`: everything, from the beginning."""

from __future__ import annotations

from overspill import reading
from overspill.reading import Bound
from overspill.retrieval.definitions import GetToolOutput
from overspill.retrieval.modes.mode import ExactMode
from overspill.retrieval.modes.slice import spell_slice
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page, passage_page


def _read(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    return passage_page(stored, bound, lambda bound: reading.raw(stored.reader, stored.view, bound), spell_slice)


RAW = ExactMode(read=_read)
