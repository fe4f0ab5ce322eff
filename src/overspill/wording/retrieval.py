"""What a model reads when it asks for a stored output."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from overspill.errors import AmbiguousName, ExpiredHandle, HandleError, OverspillError
from overspill.text.humanize import count_noun, escape_invisible, one_line
from overspill.types import Decoding, Excerpt, Kept, Support
from overspill.wording.names import tool_name, wait_call
from overspill.wording.replies import MAX_ERROR_LINE_CHARS

NULL = "[null: the expression matches nothing, or matches a stored null.]"
BUILTIN_ANSWERED = "The built-in engine answered: passages found by their words, no model."
NEAREST = "Nothing in this output seems to answer that. The passages that come nearest:"
NONE_FITS = "(What matches does not fit into this answer.)"
PASSAGES = "PASSAGES (found by the built-in engine for the same question):"
UNSUPPORTED = "UNSUPPORTED (what the model answered; nothing was found in the stored output that says so):"
STILL_LOADING = "The tables are still being loaded, which takes longer than a call may. Send the same call again."
SQL_REQUIRED = "SQL needs `query`: one SELECT over the table `output`."
EXPANDED = "[Found inside a string that contains JSON.]"
_MAX_HALF_CHARACTER_BYTES = 3


def query_required(mode: str) -> str:
    return f"Query required for {mode} mode."


def too_large(count: int, mode: str) -> str:
    """The error for a result that is too large. `mode`: the mode that takes a question in words."""
    return f"Response too large ({count} bytes). Use {mode} or slice mode."


def incomplete(kept: Kept) -> str:
    """The note added to every answer about an output that is incomplete."""
    return f"Only the first {kept.size.bytes:,} bytes of this output are stored: {one_line(kept.missing, MAX_ERROR_LINE_CHARS)}"


def decoding(how: Decoding) -> str:
    """The note added to every answer from decoded text."""
    guess = " (a guess)" if how.guessed else ""
    return f"Decoded from {', then '.join(how.formats)}{guess}. Lines, positions and quotes refer to the decoded text."


def not_ready(progress: str = "", *, has_wait_tool: bool = False) -> str:
    latest = f" Its latest progress: {one_line(progress)}" if progress else ""
    return f"Tool not ready. Use {tool_name('wait_for_tool_output') if has_wait_tool else wait_call()}.{latest}"


def decoding_notes(how: Decoding | None) -> list[str]:
    if how is None:
        return []
    return [f"[{words}]" for words in ([decoding(how)] if how.formats else []) + list(how.remarks)]


def lost_bytes(count: int, why: str) -> str:
    return f"{count:,} more were lost. {why}"


def retrieval_failure(tool: str, spelling: str, error: OverspillError, expired: Callable[[str], str]) -> str:
    """`expired` writes the message that a tool's output has expired."""
    if tool == "get_artifact":
        return f"{error.code}: {error}"
    if tool == "get_tool_output" and isinstance(error, HandleError):
        if isinstance(error, AmbiguousName):
            return str(error)
        if not isinstance(error, ExpiredHandle):
            return f"Unknown tool ID: {one_line(spelling)}"
        return expired(error.tool)
    return escape_invisible(str(error))


def abstract(tool: str, handle: str, strategy: str, text: str) -> str:
    return f"ABSTRACT FROM TOOL OUTPUT {one_line(tool)} WITH HANDLE {one_line(handle)}, STRATEGY:{strategy}:\n\n{text}"


def extraction_failure(tool: str, handle: str, strategy: str, error: str) -> str:
    return f"TOOL_OUTPUT FAILED FOR {one_line(tool)} WITH HANDLE {one_line(handle)}, STRATEGY:{strategy}:\n\n{error}"


def unknown_handle(handle: str, stored: int, error: HandleError) -> str:
    """The answer for an unknown handle. It is not an error, just like a search that finds nothing."""
    if isinstance(error, ExpiredHandle | AmbiguousName):
        return f"Nothing was searched. {error}"
    return (
        f"Nothing was searched: this session has no stored output with the handle {one_line(handle)!r}. "
        f"It has {count_noun(stored, 'stored output')}. Use a handle exactly as a tool result gave it."
    )


def citations(
    excerpts: Sequence[Excerpt],
    *,
    quoted: bool,
    omitted: int = 0,
    support: Support = "cited",
    is_shown: Callable[[Excerpt], bool] = lambda _: False,
) -> str:
    """Every excerpt, even an omitted one, was found in the stored bytes exactly as shown here. Those that `is_shown` accepts are
    already in the answer, and are not quoted again."""
    if not excerpts:
        return f"CITATIONS: {omitted:,} checked, none fits."
    head = "CITATIONS (checked against the stored output):"
    if support == "located":
        head = "FOUND AT (the model cited nothing; these passages hold the words of its answer):"
    cited = [head]
    for number, excerpt in enumerate(excerpts, 1):
        first, last = excerpt.start_line, excerpt.end_line
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        words = excerpt.text.strip()
        if len(words.splitlines()) > 1:  # as JSON: a stored line could pass for one of ours
            words = json.dumps(words)
        shown = f": {words}" if quoted and not is_shown(excerpt) else ""
        cited.append(f"[{number}] {lines}, bytes {excerpt.start_byte}-{excerpt.end_byte}{shown}")
    return "\n".join([*cited, *([f"{omitted:,} more were checked but do not fit."] if omitted else [])])


def partial(readable: int, seconds: float, held_back: int = 0) -> str:
    """The note on a running tool. `held_back`: bytes at the end that may be part of a secret. Up to 3 are not mentioned."""
    more = f" The next {held_back} can be read when more has arrived." if held_back > _MAX_HALF_CHARACTER_BYTES else ""
    return f"[Partial: the tool is still running ({seconds:.1f}s) and has produced {readable} bytes so far.{more}]"


def place(
    chars: tuple[int, int],
    lines: tuple[int, int],
    bytes_: tuple[int, int],
    total: int,
    *,
    matches: int | None = None,
    omitted: int = 0,
    rest: Sequence[str] = (),
) -> str:
    """Say which part of the output this is, and which calls return the other parts."""
    parts = [f"Characters {chars[0]}-{chars[1]}, lines {lines[0]}-{lines[1]}, bytes {bytes_[0]}-{bytes_[1]} of {total}."]
    if matches is not None and matches > 1:
        parts.append(f"The anchor occurs {matches} times.")
    if rest:
        parts.append(f"{omitted} bytes of what you asked for did not fit. Next: {'; '.join(rest)}")
    return f"[{' '.join(parts)}]"


def grep_place(shown: int, total: int, exact: bool, searched: tuple[int, int], size: int, *, is_cut: bool = False) -> str:
    start, end = searched
    what = "No match" if not total else f"{shown} of {total}{'' if exact else ' or more'} matching lines"
    return f"{what} in bytes {start}-{end} of {size}.{' The line is cut: there was no room for more.' if is_cut else ''}"


def continuation(ask: str) -> str:
    return f"[More follows. Next: {ask}]"


def sql_rows(total: int, shown: int, stored: int, name: str) -> str:
    """Say how many rows there are. `name` is the output with the first `stored` rows, if not all are shown."""
    counted = count_noun(total, "row")
    if shown == total:
        return f"[{counted}]"
    which = "All" if stored == total else f"The first {stored:,}"
    where = f' {which} are stored as {name}, which mode="sql" can query.' if name else ""
    return f"[{counted}, of which the first {shown:,} are shown.{where}]"


def over_all_rows(statement: str) -> str:
    return f"(SQL over all rows: {statement})"


def sql_columns(total: int, shown: int) -> str:
    return f"[{count_noun(total, 'column')}, of which the first {shown:,} are named.]"


def no_table(kind: str) -> str:
    if kind == "empty":
        return "There is no table: the output is empty."
    return f'There is no table in this output: it was read as {kind}. Use mode="grep" or mode="ask".'
