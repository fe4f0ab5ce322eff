"""A session as rows of a timeline: its op tree, and what the tree leaves out, with a bar for the time each took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from overspill import handles
from overspill.record import events as recorded
from overspill.record.events import Entry, OutputExtracted, RecordedReply
from overspill.record.op_tree import Op, op_tree
from overspill.text.humanize import count_noun

_SPAN = 1000
"""Bars are drawn in thousandths of the session's time."""
_MAX_DEPTH = 8
_SHOWN = {
    "charactersIn": "characters in",
    "charactersOut": "characters shown",
    "tool_output_reason": "kept because",
    "mode": "mode",
    "strategy": "strategy",
    "model": "model",
    "support": "support",
    "fallback": "answered instead",
    "chunks": "chunks",
    "excerpts": "quotes",
    "messages": "messages",
    "tokensIn": "tokens in",
    "tokensOut": "tokens out",
    "cost": "cost in USD",
    "call": "call",
    "background": "in the background",
    "of": "turns at most",
    "final": "only the report, because",
    "error": "error",
    "response": "answer",
}
_SHOWN_ROWS = {
    "notice": ("notice", "jobs"),
    "news": ("notice", "jobs that have ended"),
    "output": ("delivery", "output of a job"),
}


class TimelineRow(Struct, frozen=True):
    kind: str
    name: str
    began_ms: int
    latency: int
    failed: bool = False
    depth: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    output: tuple[str, str] | None = None
    """The session and the id of the output that it stored or read."""
    citation: str = ""
    """The extraction whose quotes can be viewed."""
    reply: RecordedReply | None = None
    """What the model was shown, if it is on record."""
    question: RecordedReply | None = None
    is_kept: bool = False
    """Whether the model was shown something instead of the output."""


class Timeline(Struct, frozen=True):
    rows: list[TimelineRow]
    began_ms: int
    ended_ms: int

    def bar(self, row: TimelineRow) -> tuple[int, int]:
        """Return where the bar of a row starts, and its width."""
        whole = max(1, self.ended_ms - self.began_ms)
        start = min(max(0, (row.began_ms - self.began_ms) * _SPAN // whole), _SPAN - 2)
        return start, max(2, min(row.latency * _SPAN // whole, _SPAN - start))


def make_timeline(events: Iterable[Entry], session: str) -> Timeline:
    found = list(events)
    citations: dict[tuple[int, str, int], list[OutputExtracted]] = {}
    for event in found:
        if isinstance(event, OutputExtracted):
            citations.setdefault((event.t, event.tool, event.latency), []).append(event)
    tree = op_tree(found)
    # In the order of the journal, which has no finer time than milliseconds. The steps of a row stay below it.
    groups = [(row.began_ms, [row]) for row in _other_rows(found, session)]
    groups += [(op.t, list(_tree_rows(op, session, citations, 0))) for op in tree.children]
    groups.sort(key=lambda group: group[0])
    rows = [row for _, group in groups for row in group]
    began = min((row.began_ms for row in rows), default=tree.t)
    return Timeline(rows, began, max((row.began_ms + row.latency for row in rows), default=began))


def _other_rows(events: Iterable[Entry], session: str) -> Iterator[TimelineRow]:
    for event in events:
        match event:
            case recorded.OutputStored(kept=kept) if kept.reason in ("requested", "background"):
                facts = (("bytes", f"{kept.size.bytes:,}"), ("kept because", kept.reason))
                yield TimelineRow("stored", kept.tool, event.t, 0, facts=facts, output=(session, kept.id))
            case recorded.JobChanged(state="queued" | "running"):
                yield TimelineRow("job", event.tool, event.t, 0, facts=(("state", event.state),))
            case recorded.TextShown():
                facts = (("characters shown", f"{event.chars:,}"), *_describe_others(event.reply))
                output = (session, event.id) if event.id else None
                yield TimelineRow(*_SHOWN_ROWS[event.what], event.t, 0, facts=facts, output=output, reply=event.reply)
            case recorded.ReferenceUsed():
                facts = (("bytes", f"{event.bytes:,}"),)
                yield TimelineRow("reference", event.tool, event.t, 0, facts=facts, output=(session, event.id))
            case recorded.EventsDropped():
                facts = (("missing from the journal", f"{event.count:,} events"),)
                yield TimelineRow("gap", "not recorded", event.t, 0, failed=True, facts=facts)
            case _:
                pass


def _tree_rows(op: Op, session: str, citations: dict[Any, list[OutputExtracted]], depth: int) -> Iterator[TimelineRow]:
    began = op.t if op.kind == "turn" else op.t - op.latency
    waiting = citations.get((op.t, op.name, op.latency), [])
    event = waiting.pop(0) if op.kind == "session" and "mode" in op.attributes and waiting else None
    kind = "extraction" if event or op.kind == "session" else op.kind
    facts = tuple(
        (_SHOWN[name], str(value)) for name, value in op.attributes.items() if name in _SHOWN and value not in ("", None)
    )
    handle = op.attributes.get("tool_output_handle")
    owner, file = handles.parse(handle) if event is None and isinstance(handle, str) else (None, "")
    if event is not None and handles.is_uuid(event.id):
        owner, file = session, event.id
    reply: RecordedReply | None = op.attributes.get("reply")
    yield TimelineRow(
        kind,
        op.name,
        began,
        op.latency,
        failed=op.status == "failed",
        depth=min(depth, _MAX_DEPTH),
        facts=(*facts, *_describe_others(reply)),
        output=(owner, file) if owner else None,
        citation=event.op if event and event.quotes else "",
        reply=reply,
        question=op.attributes.get("question"),
        is_kept="tool_output_reason" in op.attributes,
    )
    for child in op.children:
        yield from _tree_rows(child, session, citations, depth + 1)


def _describe_others(reply: RecordedReply | None) -> Iterator[tuple[str, str]]:
    if reply is not None and reply.others:
        yield "not recorded", f"{count_noun(reply.others, 'block')} other than text"
