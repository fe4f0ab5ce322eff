"""What you see while an agent runs: a live display on a terminal, lines with --verbose, or else only warnings.

Logged warnings are shown too, unless the line of a step already says the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from overspill.agent.progress import CallEnded, CallStarted, ModelAnswered, ModelSaid, Progress, TurnStarted
from overspill.cli.logs import show_log
from overspill.cli.tables import progress_console
from overspill.cli.terminal import Level, format_message, inform, is_quiet
from overspill.text.humanize import escape_invisible, format_size


@contextmanager
def progress(*, verbose: bool) -> Generator[ProgressView]:
    console = progress_console()
    if not console.is_interactive or is_quiet():
        with show_log(wanted=_is_not_shown_yet if verbose else _is_relevant):
            yield ProgressView(verbose=verbose)
        return
    display = _Display(console, verbose=verbose)
    with (
        Live(console=console, get_renderable=display.render, refresh_per_second=8, transient=True),
        show_log(display.log, _is_not_shown_yet),
    ):
        yield display


class ProgressView:
    """Writes lines to standard error: one for each step if `verbose`, or else only warnings."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose

    def observe(self, event: Progress) -> None:
        is_warning = isinstance(event, ModelSaid) and event.warning
        if (is_warning or self._verbose) and (text := describe(event)):
            self.log(text, "warning" if is_warning else "note")

    def log(self, text: str, level: Level = "note") -> None:
        inform(text, level)


class _Display(ProgressView):
    def __init__(self, console: Console, *, verbose: bool) -> None:
        super().__init__(verbose=verbose)
        self._console = console
        self._turns: dict[str, TurnStarted] = {}
        self._running: dict[tuple[str, str], tuple[str, float]] = {}
        self._status = ""

    def observe(self, event: Progress) -> None:
        match event:
            case TurnStarted():
                self._turns[event.agent] = event
            case CallStarted():
                self._running[event.agent, event.id] = (event.tool, time.monotonic())
            case CallEnded():
                self._running.pop((event.agent, event.id), None)
                if event.kept is not None and not self._verbose:
                    self.log(describe(event))
            case ModelSaid(warning=False):
                self._status = event.text
            case _:
                pass
        super().observe(event)

    def log(self, text: str, level: Level = "note") -> None:
        self._console.print(Text(format_message(text, level), style="dim"))

    def render(self) -> RenderableType:
        now = time.monotonic()
        turns = [Text(escape_invisible(describe(turn))) for turn in self._turns.values()]
        calls = [
            Spinner("dots", Text(escape_invisible(f"{tool} {now - since:.0f}s")), style="dim")
            for tool, since in self._running.values()
        ]
        return Group(*turns, *calls, *([Text(escape_invisible(self._status), style="italic")] if self._status else []))


def describe(event: Progress) -> str:
    """Describe an event in one line, or return nothing if it needs no line."""
    match event:
        case TurnStarted():
            final = f", final: {event.final}" if event.final else ""
            return f"{event.agent}: turn {event.turn} of {event.of}, context {event.percent}%{final}"
        case ModelAnswered():
            outcome = f"failed: {event.error}" if event.error else f"answered in {event.seconds:.1f}s"
            return f"{event.agent}: {event.model} {outcome}"
        case CallEnded():
            took = f"took {event.seconds:.1f}s"
            if event.failed:
                took = f"failed after {event.seconds:.1f}s: {event.failed}"
            elif event.job:
                took = f"keeps running in the background as {event.job}"
            elif (kept := event.kept) is not None:
                took += f"; kept {format_size(kept.size.bytes)} as {kept.handle} ({kept.reason})"
            return f"{event.agent}: {event.tool} {took}"
        case CallStarted():
            return ""
        case ModelSaid():
            return f"{event.agent}: {event.text}" if event.agent else event.text


def _is_not_shown_yet(record: logging.LogRecord) -> bool:
    """Whether no line of a call says the same: it says what was kept, except for a background job, whose call ends earlier."""
    is_shown = getattr(record, "tool_output", False) and getattr(record, "reason", "") != "background"
    return not is_shown and _is_relevant(record)


def _is_relevant(record: logging.LogRecord) -> bool:
    """Whether to show a record. Threads of tools that outlive the session do not matter, because they end with the process."""
    return not hasattr(record, "go_on")
