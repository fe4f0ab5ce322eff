"""What a model reads about tools that run in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from overspill.text.humanize import format_short_size, format_tokens, one_line
from overspill.types import ENDED, JobState, Size
from overspill.wording.names import tool_name, wait_call
from overspill.wording.replies import MAX_ERROR_LINE_CHARS

NONE_RUNNING = "No async tools running."
INTERRUPTED = "it was interrupted before it finished. Call the tool again."
MAX_LISTED_JOBS = 10
"""Lines in one section of a notice. A model reads the notice every turn, so it must not grow with the conversation."""


class JobStatus(Struct, frozen=True):
    """A background job as a model sees it."""

    id: str
    tool: str
    state: JobState
    seconds: float
    size: Size | None = None
    retrievals: int = 0
    exceeds: bool = False
    error: str = ""
    progress: str = ""


def running_message(id: str, tool: str, *, notice: bool = True, has_wait_tool: bool = False) -> str:
    """The message for a background tool. `notice`: whether the host shows a System Notice. If not, asks the model to wait."""
    call = f'{tool_name("get_tool_output")}("{id}", mode)'
    waits = f"Call {tool_name('wait_for_tool_output')}(), then {call}." if has_wait_tool else f"Wait for it with {wait_call(id)}."
    next_step = (
        f"When the System Notice shows this tool is ready, use {call} to retrieve its output."
        if notice
        else f"It keeps running in the background. {waits}"
    )
    return f"Tool Output ID: {id}\nTool: {one_line(tool)}\n\n{next_step}"


def too_many_left_jobs(count: int) -> str:
    return (
        f"This call was not made: {count} calls that were left behind when their clients disconnected are still running. "
        "Try again when some have completed."
    )


def left_too_long(seconds: float) -> str:
    """Why a job without a time limit was stopped after its client had left."""
    return f"not finished {seconds:g} s after the client that called it disconnected"


def completed_jobs(jobs: Sequence[JobStatus]) -> str:
    return "\n".join(["Completed tools:", *map(_done_line, jobs)])


def still_running(jobs: Sequence[JobStatus]) -> str:
    return "\n".join(["Still running:", *(_pending_line(job) for job in jobs)])


def notice(jobs: Sequence[JobStatus], *, is_documented: bool = False) -> str:
    """The System Notice. `is_documented`: uses the words of a document, which also lists outputs that the model has read."""
    if not jobs:
        return ""
    sections = [
        _section("Running", [job for job in jobs if job.state in ("running", "waiting")], _pending_line),
        _section("Queued", [job for job in jobs if job.state == "queued"], _pending_line),
        _section("Ready", [job for job in jobs if job.state == "ready"], _ready_line, list_read=is_documented),
        _section("Failed", [job for job in jobs if job.state in ("failed", "cancelled")], _done_line),
        f'Use {tool_name("get_tool_output")}(id, "raw"|"extract"|"slice") to retrieve.\n'
        f"Use {tool_name('wait_for_tool_output')}() to block until a running tool completes."
        if is_documented
        else f"Use {wait_call()} to retrieve, or to wait for one that is running.",
    ]
    return "\n\n".join(["## Async Tool Status", *filter(None, sections)])


def options(jobs: Sequence[JobStatus], *, has_wait_tool: bool = False) -> str:
    """What the model can do next. Shown with the notice."""
    moves, wait = ["Call tools to advance your task"], f"{tool_name('wait_for_tool_output')}()"
    if any(job.state in ENDED for job in jobs):
        calls = f"{tool_name('get_tool_output')}(id, mode)" + (f" or {wait}" if has_wait_tool else "")
        moves.append(f"Retrieve/examine async tool outputs using {calls}")
    elif jobs:
        moves.append(f"Wait for running tools using {wait if has_wait_tool else wait_call()}")
    moves.append("Provide your final report/answer")
    return "\n".join(["You now need to decide your next move:", *(f"{n}. {move}" for n, move in enumerate(moves, 1))])


def _section(title: str, jobs: Sequence[JobStatus], line: Callable[[JobStatus], str], *, list_read: bool = True) -> str:
    """Lists the newest unread jobs first, and counts those that do not fit."""
    if not jobs:
        return ""
    by_interest = sorted(range(len(jobs)), key=lambda index: (jobs[index].retrievals > 0, -index))
    wanted = [index for index in by_interest if list_read or not jobs[index].retrievals]
    listed = sorted(wanted[:MAX_LISTED_JOBS])
    counted = [job for index, job in enumerate(jobs) if index not in listed]
    lines = [f"### {title} ({len(jobs)})", *(line(jobs[index]) for index in listed)]
    if counted:
        retrieved = sum(job.retrievals > 0 for job in counted)
        older = sum(job.state == "ready" for job in counted) - retrieved
        kinds = ", ".join(f"{n:,} {what}" for n, what in ((retrieved, "already retrieved"), (older, "older")) if n > 0)
        counts = f"{len(counted):,} more{': ' if kinds else ''}{kinds}" if listed else kinds
        lines.append(f"- {counts}. Their ids are in earlier tool results.")
    return "\n".join(lines)


def _pending_line(job: JobStatus) -> str:
    progress = f", {one_line(job.progress)}" if job.progress else ""
    state = f"waiting for input, running {job.seconds:.1f}s" if job.state == "waiting" else f"{job.state} {job.seconds:.1f}s"
    return f"- {one_line(job.tool)} (id: {job.id}, {state}{progress})"


def _ready_line(job: JobStatus) -> str:
    facts = [f"id: {job.id}"]
    if job.size is not None:
        facts.append(format_tokens(job.size.tokens))
    if job.exceeds:
        facts.append("exceeds threshold")
    if job.retrievals:
        facts.append(f"{job.retrievals} retrieval{'s' if job.retrievals > 1 else ''} performed")
    return f"- {one_line(job.tool)} ({', '.join(facts)})"


def _done_line(job: JobStatus) -> str:
    outcome = f"size: {format_short_size(job.size.bytes if job.size else 0)}"
    if job.state == "cancelled":
        outcome = "cancelled"
    elif job.error or job.state == "failed":
        outcome = f"failed: {one_line(job.error, MAX_ERROR_LINE_CHARS)}"
    return f"- {one_line(job.tool)} (id: {job.id}, {outcome})"
