"""The names under which a model knows the retrieval tools: a host may put a prefix before them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.wording.shell import COMMAND, spell_get

prefix: ContextVar[str] = ContextVar("overspill_tool_prefix", default="")
"""What texts put before the names now. Travels with every task and thread that words an answer."""


@contextmanager
def prefixed(by: str) -> Generator[None]:
    """Texts that are worded inside call the retrieval tools by their names with this prefix."""
    before = prefix.set(by)
    try:
        yield
    finally:
        prefix.reset(before)


def tool_name(name: str) -> str:
    return prefix.get() + name


Way: TypeAlias = Literal["ask", "grep", "query", "lines"]
QUESTION = "<your question> (<other words for it>)"


class NextStep(Struct, frozen=True):
    """A way to read more of an output: a question, a pattern, an expression, or a range of lines."""

    way: Way
    value: str


_ASK, _FIRST_LINES = NextStep("ask", QUESTION), NextStep("lines", "1-100")


def next_calls(id: str, steps: Sequence[NextStep], offered: Collection[str]) -> str:
    """`Next: get_tool_output(…)`, with a question that the model fills in and then these steps, or an empty string if no offered
    tool can do any of it. `id`: as the reply shows it."""
    tool, key, spell = next((way for way in _TOOLS if way[0] in offered), ("", "", _spell_nothing))
    asked = [spelt for step in (_ASK, *steps) if (spelt := spell(step))] or [spell(_FIRST_LINES)]
    if not asked[0]:
        return ""
    first = f"{spell_get(id)} {asked[0]}" if tool == COMMAND else f'{tool_name(tool)}({key}="{id}", {asked[0]})'
    return f"Next: {first}" + "".join(f", or with {each}" for each in asked[1:])


def _spell_exactly(step: NextStep) -> str:
    match step.way:
        case "ask":
            return f'mode="extract", query="{step.value}"'
        case "grep":
            return f'mode="grep", pattern="{step.value}"'
        case "query":
            return f'mode="query", query="{step.value}"'
        case "lines":
            return f'mode="slice", slice={{"lines": "{step.value}"}}'


def _spell_for_shell(step: NextStep) -> str:
    return f"--{step.way} {shlex.quote(step.value)}"  # the value may be a name that the output chose


def _spell_for_artifact(step: NextStep) -> str:
    return f'{step.way}="{step.value}"' if step.way in ("query", "lines") else ""


def _spell_in_words(step: NextStep) -> str:
    return f'extract="{step.value}"' if step.way == "ask" else ""


def _spell_nothing(step: NextStep) -> str:
    return ""


_TOOLS: tuple[tuple[str, str, Callable[[NextStep], str]], ...] = (
    (COMMAND, "", _spell_for_shell),
    ("get_tool_output", "id", _spell_exactly),
    ("get_artifact", "id", _spell_for_artifact),
    ("tool_output", "handle", _spell_in_words),
)
"""The exact ones first."""
