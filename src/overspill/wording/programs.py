"""What a model reads about its programs: what they can use, and what to write instead of what failed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from overspill.text.humanize import count_noun, format_size, suggest_nearest
from overspill.wording.framing import OPENING, answer, block

FUNCTIONS = {
    "load": "load(name): parsed JSON; rows of a table as dicts; lines of anything else",
    "parts": "parts(name): names of parts to load one by one, if an output is too large",
    "text": "text(name, start, end): characters",
    "sql": 'sql("SELECT … FROM out_3f7k9q"): rows as dicts',
    "find": "find(question, name): passages with positions",
    "save": "save(label, value): stores an output, returns its name",
    "tool_stubs": "tool_stubs(): signatures of the tools it may call, as in await server.tool(id=1)",
}
DESCRIPTION = "\n".join(
    (
        "Run a Python program over stored tool outputs: count, sum, filter, join, compare. Only what it prints, and the value of "
        "its last expression, comes back.",
        *FUNCTIONS.values(),
        "No files, network, yield, del or packages; it has json, re, csv, math, collections, itertools, functools, datetime, "
        "decimal.",
    )
)
CODE = "Python; `name` is the name of a stored output, such as out_3f7k9q"

INSTEAD = (
    ("'?coroutine'?", "A tool must be awaited: `result = await server.tool(id=1)`; several with `await asyncio.gather(…)`."),
    ("can't be awaited", "Only tools are awaited. Call load, text, sql, find and save without `await`."),
    (
        "cannot suspend in this synchronous context",
        "load, text, sql, find, save and tools cannot be called inside sorted(key=…), map, filter or a class. Call them in a "
        "`for` loop first, and use what they returned.",
    ),
    ("yield expressions", "Write a function that fills a list and returns it, or a list comprehension."),
    ("'del' statement", "Use `items.pop(key)`, or build a new list or dict without it."),
    ("No module named 'statistics'", "Mean: `sum(x) / len(x)`. Median: `sorted(x)[len(x) // 2]`."),
    ("No module named 'heapq'", "Use `sorted(items, key=…)[:n]`."),
    ("No module named '(?:io|pandas|numpy|polars|pathlib)", "load(name) gives rows as dicts; sql(…) groups and joins them."),
    ("No module named '(?:requests|urllib|http|socket|httpx)", "There is no network. tool_stubs() lists the tools it may call."),
    (
        "No module named",
        "It has json, re, csv, math, collections, itertools, functools, datetime, decimal, bisect, hashlib, base64, random, time "
        "and asyncio.",
    ),
    (
        "memory limit",
        "Load less at a time: `for part in parts(name): rows = load(part)`, or let sql(…) filter first. Print less.",
    ),
    ("time limit exceeded|request timeout", "Do less in one program: let sql(…) filter first, or save() what is ready."),
    ("recursion depth", "Use a loop with a list in place of recursion."),
    ("recursion limit exceeded", "The JSON is nested too deeply for load. Use text(name) and re."),
    ("suspension", "It called load, sql, find or tools too often. Load a whole output once, and loop over that."),
    ("not supported in this environment|PermissionError", "There are no files, variables or clocks. load(name) reads an output."),
    ("unexpected end of hex escape", "The JSON has half a character, such as \\ud800. Use text(name) and re."),
    ("no longer exists", "Print what you need of the object, such as its fields."),
    ("4300 digits", "Use floats, or fewer digits."),
)


def describe_failure(cause: str, line: int, source: str, tools: Collection[str]) -> str:
    """Describe how a program failed, and what to write instead, if that is known."""
    advice = next((advice for pattern, advice in INSTEAD if re.search(pattern, cause)), "")
    if unknown := re.search(r"NameError: name '([^']{1,100})' is not defined", cause):
        known = [*FUNCTIONS, *tools]
        advice = f"{suggest_nearest(unknown[1], known)} Known names: {', '.join(known[:40])}.".strip()
    shown = f"  {source.strip()[:200]}" if source.strip() else ""
    return "\n".join(filter(None, [f"The program failed{f' at line {line}' * bool(line)}: {cause}", shown, advice]))


def result(printed: str, value: str, failure: str, saved: Sequence[str], notes: Sequence[str]) -> str:
    """Write what a program printed and returned, unchanged. If we add words, it is put into a block that it cannot end."""
    said = "\n".join(part for part in (printed.removesuffix("\n"), value) if part)
    if said and not failure:
        return answer(said, [f"[{note}]" for note in notes])
    lines = [failure or "It printed nothing.", f"It saved {', '.join(saved)}." * bool(saved)]
    return "\n".join(filter(None, [*lines, *(["It had printed:", block(OPENING, said)] if said else [])]))


def wrong_arguments(function: str) -> str:
    return f"These are not its arguments. Use {FUNCTIONS[function]}." if function in FUNCTIONS else "Pass arguments by name."


def ended(seconds: float, has_stored: bool) -> str:
    stored = " What it saved and what its tools returned is stored." if has_stored else ""
    return f"The program was stopped at its time limit of {seconds:g} s.{stored} Do less in one program, or filter with sql(…)."


def too_large(name: str, size: int, most: int) -> str:
    return (
        f"{name} has {format_size(size)}; load takes at most {format_size(most)}. Read it in parts: "
        f"`for part in parts({name!r}): rows = load(part)`. Or use sql(…) or find(…)."
    )


def too_many_rows(total: int, given: int) -> str:
    return f"The statement gives {count_noun(total, 'row')}, of which only {given:,} can be read. Select fewer, or use LIMIT."


def not_allowed(tool: str, allowed: Collection[str]) -> str:
    some = f" It may call: {', '.join(list(allowed)[:20])}." if allowed else ""
    return f"A program may not call {tool}.{some} Call it directly, or ask the user to list it in the setting programTools."


def other_server(what: str, source: str) -> str:
    return (
        f"{what} may not be used in a program that has used {source}: a program reads outputs and calls tools of one server. "
        "Use two programs, or ask the user to permit it in the setting refs.allow."
    )
