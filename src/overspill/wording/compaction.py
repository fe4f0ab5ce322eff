"""What a model reads in place of an old result that it has already used."""

from __future__ import annotations

from collections.abc import Collection

from overspill.text.humanize import count_noun, format_size, one_line
from overspill.types import Kept
from overspill.wording.names import tool_name

OPENING = "[An earlier result"


def compacted_result(kept: Kept, offered: Collection[str]) -> str:
    """One line: what it is, how large, and how to read it again."""
    facts = f"{format_size(kept.size.bytes)}, {count_noun(kept.size.lines, 'line')}"
    call = ""
    if "get_tool_output" in offered:
        call = f' Read it with {tool_name("get_tool_output")}(id="{kept.name}", mode="slice").'
    elif "get_artifact" in offered:
        call = f' Read it with {tool_name("get_artifact")}(id="{kept.name}").'
    elif "tool_output" in offered:
        call = f' Ask it with {tool_name("tool_output")}(handle="{kept.name}", extract="what to extract").'
    return f"{OPENING} of {one_line(kept.tool)} is stored as {kept.name} ({facts}).{call}]"
