"""The op tree as a view of a journal: turns, agents, background jobs, extractions that never ended."""

from __future__ import annotations

from overspill.events import Asked, Called, Extracted, JobChanged, Opened, Retrieved, Spawned, TurnBegan
from overspill.optree import Op, op_tree

SESSION = "01a1de41-6edd-721a-a918-7e77a9c1fc94"
FILE = "01a1de41-6488-75ca-8a8b-5e79c4086245"


def test_what_follows_a_turn_belongs_to_it() -> None:
    tree = op_tree(
        [
            Opened(1, SESSION),
            Called(2, "before"),
            TurnBegan(10, 1, 5),
            Asked(12, op="", model="x/y", latency=2),
            Called(15, "search", call="c1"),
            TurnBegan(20, 2, 5, "no turns left."),
            Retrieved(22, "get_tool_output", "raw", call="c2"),
            Spawned(23, "agent__b", "01b"),
            JobChanged(24, FILE, "slow", "running"),
            JobChanged(25, FILE, "slow", "ready", 1.5),
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


def test_an_extraction_that_never_ended_is_not_lost() -> None:
    asked = Asked(5, op="one", model="x/y")
    ended = Extracted(6, op="two", id=FILE, tool="tool_output", mode="auto", strategy="full-chunked")
    tree = op_tree([Opened(1, SESSION), asked, Asked(5, op="two", model="x/y"), ended])
    done, lost = tree.children
    assert (done.name, done.status, len(done.children)) == ("tool_output", "ok", 1)
    assert (lost.name, lost.status, len(lost.children)) == ("extraction", "failed", 1)
