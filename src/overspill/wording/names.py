"""The names under which a model knows the retrieval tools. A host may add a prefix to them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from overspill.wording.shell import COMMAND, spell_get

prefix: ContextVar[str] = ContextVar("overspill_tool_prefix", default="")
"""The current prefix of the names. Every task and thread that writes an answer inherits it."""


@contextmanager
def prefixed(by: str) -> Generator[None]:
    """Text written inside this context uses the retrieval tools' names with this prefix."""
    before = prefix.set(by)
    try:
        yield
    finally:
        prefix.reset(before)


def tool_name(name: str) -> str:
    return prefix.get() + name


def wait_call(id: str = "") -> str:
    """Write the call that waits for a background tool and returns its output."""
    named = f'id="{id}"' if id else "id"
    return f'{tool_name("get_tool_output")}({named}, mode="wait")'


def spell_first(offered: Collection[str], ways: Mapping[str, str]) -> str:
    """Write a call of the first of these tools that is offered, with its arguments; empty if none is offered."""
    return next((f"{tool_name(tool)}({arguments})" for tool, arguments in ways.items() if tool in offered), "")


Way: TypeAlias = Literal["ask", "grep", "query", "lines"]
QUESTION = "<your question> (<other words for it>)"


class NextStep(Struct, frozen=True):
    """A way to read more of an output: a question, a pattern, an expression, or a range of lines."""

    way: Way
    value: str


_ASK, _FIRST_LINES = NextStep("ask", QUESTION), NextStep("lines", "1-100")


_SPELLINGS: dict[str, dict[Way, str]] = {
    COMMAND: {way: f"--{way} {{}}" for way in get_args(Way)},
    "get_tool_output": {
        "ask": 'mode="ask", query="{}"',
        "grep": 'mode="grep", pattern="{}"',
        "query": 'mode="query", query="{}"',
        "lines": 'mode="slice", slice={{"lines": "{}"}}',
    },
    "get_artifact": {"query": 'query="{}"', "lines": 'lines="{}"'},
    "tool_output": {"ask": 'extract="{}"'},
}
"""How to ask each tool. Exact ways come first."""


def next_calls(id: str, steps: Sequence[NextStep], offered: Collection[str]) -> str:
    """`Next: get_tool_output(…)`, with a question that the model fills in and then these steps, or an empty string if no offered
    tool can do any of it. `id`: as the reply shows it."""
    tool = next((tool for tool in _SPELLINGS if tool in offered), None)
    if tool is None:
        return ""
    ways, quote = _SPELLINGS[tool], shlex.quote if tool == COMMAND else str  # values may be names from the output, so quote them
    steps = [step for step in (_ASK, *steps) if step.way in ways] or [_FIRST_LINES]
    first, *others = (ways[step.way].format(quote(step.value)) for step in steps)
    key = "handle" if tool == "tool_output" else "id"
    call = f"{spell_get(id)} {first}" if tool == COMMAND else f'{tool_name(tool)}({key}="{id}", {first})'
    return f"Next: {call}" + "".join(f", or with {each}" for each in others)
