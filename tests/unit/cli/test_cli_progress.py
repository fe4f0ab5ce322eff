"""What is shown of each step of a run."""

from __future__ import annotations

import pytest

from overspill.agent.progress import CallEnded, CallStarted, ModelAnswered, ModelSaid, Progress, TurnStarted
from overspill.cli.progress import describe, progress
from overspill.types import Kept, Size

KEPT = Kept("01a1", "01a2", "log", "size_cap", Size(191_053, 191_053, 4000, 9000), "ab", 1)


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (TurnStarted("a", 2, 10, 4), "a: turn 2 of 10, context 4%"),
        (TurnStarted("a", 10, 10, 4, "no turns."), "a: turn 10 of 10, context 4%, final: no turns."),
        (ModelAnswered("a", "x/y", 1.25), "a: x/y answered in 1.2s"),
        (ModelAnswered("a", "x/y", 1.25, "no credit"), "a: x/y failed: no credit"),
        (CallStarted("a", "1", "log"), ""),
        (CallEnded("a", "1", "log", 0.5), "a: log took 0.5s"),
        (CallEnded("a", "1", "log", 0.5, "no disk"), "a: log failed after 0.5s: no disk"),
        (CallEnded("a", "1", "log", 5.0, job="art_1"), "a: log keeps running in the background as art_1"),
        (CallEnded("a", "1", "log", 0.5, kept=KEPT), "a: log took 0.5s; kept 191 KB as session-01a1/01a2 (size_cap)"),
        (ModelSaid("a", "Reading"), "a: Reading"),
        (ModelSaid("", "the server is gone", warning=True), "the server is gone"),
    ],
)
def test_each_step_has_a_line(event: Progress, shown: str) -> None:
    assert describe(event) == shown


def test_without_a_terminal_only_warnings_are_shown_and_escapes_are_visible(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(verbose=False) as shown:
        shown.observe(TurnStarted("a", 1, 2, 3))
        shown.observe(ModelSaid("a", "care\x1b[2J", warning=True))
        shown.observe(CallStarted("a", "1", "log"))
    assert capsys.readouterr().err == "overspill: warning: a: care\\x1b[2J\n"
