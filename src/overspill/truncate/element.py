"""Keeps the structure of JSON and XML and omits elements."""

from __future__ import annotations

import re

from overspill.text.lines import count_lines
from overspill.truncate.element_json import outline_json
from overspill.truncate.element_xml import outline_xml
from overspill.truncate.ends import for_whole_text, head_tail
from overspill.truncate.shape import Cut, Shape

_XML = re.compile(r"\ufeff?[ \t\r\n]*<")
_either_end = for_whole_text(head_tail)


def element(text: str, limit: int, shape: Shape) -> Cut:
    """Falls back to `head_tail` if the text does not parse, is nested too deeply or cannot stay valid within the limit."""
    try:
        outline = outline_xml(text, limit, shape) if _XML.match(text) else outline_json(text, limit, shape)
    except RecursionError:
        outline = None
    if outline is None:
        return _either_end(text, limit, shape)
    return Cut(outline, "element", max(0, count_lines(text) - count_lines(outline)), len(text) - len(outline))
