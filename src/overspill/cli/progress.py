"""What is shown of a run while it goes on: a live display on a terminal, lines with --verbose, else only warnings.

Warnings of the log are shown too, but for what a step's own line says already.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from overspill.agent.progress import CallEnded, CallStarted, ModelAnswered, ModelSaid, Progress, TurnStarted
from overspill.cli.log_lines import show_log, to_standard_error
from overspill.cli.messages import say
from overspill.cli.terminal import progress_console
from overspill.text.humanize import format_size, visible


class ProgressView(Protocol):
    def observe(self, event: Progress) -> None: ...
    def say(self, text: str) -> None: ...


@contextmanager
def progress(*, verbose: bool) -> Generator[ProgressView]:
    console = progress_console()
    if not console.is_interactive:
        with show_log(to_standard_error, _untold if verbose else _lasting):
            yield _Lines(verbose=verbose)
        return
    display = _Display(console, verbose=verbose)
    with (
        Live(console=console, get_renderable=display.picture, refresh_per_second=8, transient=True),
        show_log(display.say, _untold),
    ):
        yield display


class _Lines:
    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose

    def observe(self, event: Progress) -> None:
        if self._verbose or _warns(event):
            self.say(line(event))

    def say(self, text: str) -> None:
        if text:
            say(text)


class _Display:
    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._turns: dict[str, TurnStarted] = {}
        self._running: dict[tuple[str, str], tuple[str, float]] = {}
        self._doing = ""

    def observe(self, event: Progress) -> None:
        match event:
            case TurnStarted():
                self._turns[event.agent] = event
            case CallStarted():
                self._running[event.agent, event.id] = (event.tool, time.monotonic())
            case CallEnded():
                self._running.pop((event.agent, event.id), None)
            case ModelSaid(warning=False):
                self._doing = event.text
            case _:
                pass
        kept = isinstance(event, CallEnded) and event.kept is not None
        if self._verbose or kept or _warns(event):
            self.say(line(event))

    def say(self, text: str) -> None:
        if text:
            self._console.print(Text(visible(text), style="dim"))

    def picture(self) -> RenderableType:
        now = time.monotonic()
        turns = [Text(visible(line(turn))) for turn in self._turns.values()]
        calls = [
            Spinner("dots", Text(visible(f"{tool} {now - since:.0f}s")), style="dim") for tool, since in self._running.values()
        ]
        return Group(*turns, *calls, *([Text(visible(self._doing), style="italic")] if self._doing else []))


def line(event: Progress) -> str:
    """Empty for what is not worth one."""
    match event:
        case TurnStarted():
            final = f", final: {event.final}" if event.final else ""
            return f"{event.agent}: turn {event.turn} of {event.of}, context {event.percent}%{final}"
        case ModelAnswered():
            said = f"failed: {event.error}" if event.error else f"answered in {event.seconds:.1f}s"
            return f"{event.agent}: {event.model} {said}"
        case CallEnded():
            return f"{event.agent}: {event.tool} {_outcome(event)}"
        case CallStarted():
            return ""
        case ModelSaid():
            return f"{event.agent}: {event.text}" if event.agent else event.text


def _outcome(event: CallEnded) -> str:
    if event.failed:
        return f"failed after {event.seconds:.1f}s: {event.failed}"
    if event.job:
        return f"goes on in the background as {event.job}"
    if event.kept is not None:
        return (
            f"took {event.seconds:.1f}s; kept {format_size(event.kept.size.bytes)} as {event.kept.handle} ({event.kept.reason})"
        )
    return f"took {event.seconds:.1f}s"


def _untold(record: logging.LogRecord) -> bool:
    """What was kept is said of the call, but for one in the background: that has ended by then."""
    said = getattr(record, "tool_output", False) and getattr(record, "reason", "") != "background"
    return not said and _lasting(record)


def _lasting(record: logging.LogRecord) -> bool:
    """Threads that go on after their session end with the process."""
    return not hasattr(record, "go_on")


def _warns(event: Progress) -> bool:
    return isinstance(event, ModelSaid) and event.warning
