"""Events: what a journal holds, and what a reader makes of lines it does not know."""

import msgspec
import pytest

from overspill.record import events
from overspill.record.events import (
    JobChanged,
    OutputExtracted,
    OutputInspected,
    OutputRetrieved,
    OutputStored,
    ReferenceUsed,
    TokensReported,
    ToolCalled,
)
from overspill.store.keep import Opening
from overspill.types import Kept, Size

FILE = "01a1dd7b-13a4-7c37-a821-1e5e402e61f9"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Opening("s", "n", "keep", 1), {"event": "session", "t": 1, "session": "s", "name": "n", "retention": "keep"}),
        (ToolCalled(2, "search"), {"event": "call", "t": 2, "tool": "search"}),
        (
            ToolCalled(2, "search", "web", "mcp", "failed", 3, 4, 5, FILE, "size_cap", True),
            {
                "event": "call", "t": 2, "tool": "search", "server": "web", "kind": "mcp", "status": "failed", "latency": 3,
                "chars_in": 4, "chars_out": 5, "id": FILE, "reason": "size_cap", "truncated": True,
            },
        ),
        (
            OutputStored(3, Kept("s", FILE, "search", "size_cap", Size(9, 8, 1, 2), "ab", 7)),
            {
                "event": "kept", "t": 3,
                "kept": {
                    "session": "s", "id": FILE, "tool": "search", "reason": "size_cap", "sha256": "ab", "created_ms": 7,
                    "size": {"bytes": 9, "chars": 8, "lines": 1, "tokens": 2, "estimated": False},
                    "server": "", "media": "text", "source": "", "blocks": [], "missing": "", "is_plain": False, "name_chars": 6,
                    "lineage": None,
                },
            },
        ),
        (
            OutputRetrieved(4, "get_artifact", "", id=FILE, end=3, chars_in=7),
            {"event": "retrieval", "t": 4, "tool": "get_artifact", "mode": "", "id": FILE, "end": 3, "chars_in": 7},
        ),
        (ReferenceUsed(5, "send", FILE, 10), {"event": "ref", "t": 5, "tool": "send", "id": FILE, "bytes": 10}),
        (TokensReported(6, 10, 12), {"event": "tokens", "t": 6, "estimated": 10, "reported": 12}),
        (
            JobChanged(7, FILE, "crawl", "failed", 1.5, "x", "web", True),
            {
                "event": "job", "t": 7, "id": FILE, "tool": "crawl", "state": "failed", "seconds": 1.5, "error": "x",
                "server": "web", "kept": True,
            },
        ),
        (
            OutputInspected(8, "op", "Grep", "failed", 3, 40),
            {"event": "look", "t": 8, "op": "op", "tool": "Grep", "status": "failed", "latency": 3, "chars_out": 40},
        ),
        (
            OutputExtracted(9, "op", FILE, "tool_output", "auto", status="failed", found=False),
            {
                "event": "extraction", "t": 9, "op": "op", "id": FILE, "tool": "tool_output", "mode": "auto",
                "status": "failed", "found": False,
            },
        ),
    ],
)  # fmt: skip
def test_an_event_survives_being_written_as_a_line(event: events.Entry, line: dict[str, object]):
    encoded = events.encode_events([event])
    assert msgspec.json.decode(encoded) == line
    assert list(events.decode_events([encoded])) == [event]


def test_a_lone_surrogate_in_a_name_does_not_corrupt_the_journal():
    happened = [ToolCalled(1, "a"), ToolCalled(2, "b\ud800"), ToolCalled(3, "c")]
    lines = events.encode_events(happened).splitlines(keepends=True)
    assert [event.tool for event in events.decode_events(lines) if isinstance(event, ToolCalled)] == ["a", "b?", "c"]


def test_unknown_lines_are_skipped():
    good = events.encode_events([ToolCalled(1, "a")])
    lines = [
        b'{"event":"from the future","t":1}\n',
        b'{"event":"call","t":"x"}\n',
        b"torn {\n",
        b'"\xff"\n',
        b"\0\n",
        b"[]\n",
        good,
    ]
    assert list(events.decode_events(lines)) == [ToolCalled(1, "a")]


def test_time_is_in_unix_milliseconds():
    assert events.now_ms() > 1_790_000_000_000
