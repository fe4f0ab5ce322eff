"""The op tree as a view of a journal: turns, agents, background jobs, extractions that failed or never ended."""

from __future__ import annotations

from overspill.handles import artifact_id
from overspill.record.events import (
    AgentStarted,
    JobChanged,
    ModelCalled,
    OutputExtracted,
    OutputInspected,
    OutputRetrieved,
    ToolCalled,
    TurnOpened,
)
from overspill.record.op_tree import Op, op_tree
from overspill.store.keep import Opening

SESSION = "01a1de41-6edd-721a-a918-7e77a9c1fc94"
FILE = "01a1de41-6488-75ca-8a8b-5e79c4086245"


def test_what_follows_a_turn_belongs_to_it() -> None:
    tree = op_tree(
        [
            Opening(SESSION, t=1),
            ToolCalled(2, "before"),
            TurnOpened(10, 1, 5),
            ModelCalled(12, op="", model="x/y", latency=2),
            ToolCalled(15, "search", call="c1"),
            TurnOpened(20, 2, 5, "no turns left."),
            OutputRetrieved(22, "get_tool_output", "raw", call="c2"),
            AgentStarted(23, "agent__b", "01b"),
            JobChanged(24, FILE, "slow", "running"),
            JobChanged(25, FILE, "slow", "ready", 1.5, kept=True),
            JobChanged(26, FILE, "slow", "failed", 2.0, "no disk"),
        ]
    )
    before, first, second = tree.children
    assert (tree.name, tree.t, before.name) == (SESSION, 1, "before")
    assert (first.kind, first.name, first.t, first.latency, first.attributes) == ("turn", "1", 10, 5, {"of": 5})
    assert [(op.kind, op.name) for op in first.children] == [("model", "x/y"), ("tool", "search")]
    assert first.children[1].attributes["call"] == "c1"
    assert second.attributes == {"of": 5, "final": "no turns left."}
    retrieved, agent, ready, failed = second.children
    assert retrieved.attributes == {"mode": "raw", "charactersOut": 0, "call": "c2"}
    assert agent == Op("session", "agent__b", 23, attributes={"session": "01b"})
    handle = f"session-{SESSION}/{FILE}"
    assert ready == Op("tool", "slow", 25, 1500, attributes={"background": True, "tool_output_handle": handle})
    assert failed == Op("tool", "slow", 26, 2000, "failed", {"background": True, "error": "no disk"})


def test_an_extraction_that_never_ended_is_not_lost_and_stays_in_its_turn() -> None:
    asked = ModelCalled(5, op="one", model="x/y")
    ended = OutputExtracted(6, op="two", id=FILE, tool="tool_output", mode="auto", strategy="full-chunked")
    events = [
        Opening(SESSION, t=1),
        TurnOpened(2, 1, 2),
        asked,
        ModelCalled(5, op="two", model="x/y"),
        ended,
        TurnOpened(7, 2, 2),
    ]
    first, second = op_tree(events).children
    done, lost = first.children
    assert (done.name, done.status, len(done.children)) == ("tool_output", "ok", 1)
    assert (lost.name, lost.status, len(lost.children)) == ("extraction", "failed", 1)
    assert second.children == ()


def test_a_failed_extraction_appears_where_it_happened_with_its_steps() -> None:
    tree = op_tree(
        [
            Opening(SESSION, t=1),
            TurnOpened(2, 1, 3),
            ModelCalled(5, op="one", model="x/y"),
            OutputInspected(6, "one", "Grep", "ok", 3, 120),
            OutputInspected(6, "one", "Read", "failed", 1, 40),
            OutputExtracted(7, "one", FILE, "tool_output", "read-grep", status="failed", found=False, latency=5),
            OutputRetrieved(8, "tool_output", "read-grep", "failed", call="c1"),
            TurnOpened(9, 2, 3),
        ]
    )
    (extraction, retrieved), after = tree.children[0].children, tree.children[1].children
    assert (extraction.kind, extraction.name, extraction.t, extraction.latency) == ("session", "tool_output", 7, 5)
    assert (extraction.status, extraction.attributes) == (
        "failed",
        {"id": artifact_id(FILE), "mode": "read-grep"},
    )
    assert extraction.children[1:] == (
        Op("tool", "Grep", 6, 3, attributes={"charactersOut": 120}),
        Op("tool", "Read", 6, 1, "failed", {"charactersOut": 40}),
    )
    assert (retrieved.name, retrieved.status, after) == ("tool_output", "failed", ())
