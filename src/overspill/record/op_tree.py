"""Views of what happened in a session: a tree of operations, and the entries of an accounting file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill import handles
from overspill.record import events
from overspill.record.events import Entry, JobChanged, ModelCalled, OutputRetrieved, Status, ToolCalled
from overspill.store.keep import Opening
from overspill.text.names import own_name

OpKind: TypeAlias = Literal["session", "turn", "tool", "model"]


class Op(Struct, frozen=True, omit_defaults=True):
    """An operation. The kind `session` has several steps: a session, an extraction, or an agent that was called as a tool."""

    kind: OpKind
    name: str
    t: int
    """When it ended, in Unix milliseconds; for a session or a turn, when it began."""
    latency: int = 0
    status: Status = "ok"
    attributes: dict[str, Any] = {}
    children: tuple[Op, ...] = ()


def op_tree(happened: Iterable[Entry]) -> Op:
    """Build the tree from a journal. It has only figures for requests, and the recorded beginning of answers."""
    root = Op("session", "", 0)
    steps: dict[str, list[Op]] = {}
    homes: dict[str, list[Op]] = {}
    turns: list[tuple[events.TurnOpened, list[Op]]] = []
    first: list[Op] = []
    attributes: dict[str, Any]
    ops = first
    for event in happened:
        match event:
            case Opening():
                root = Op("session", event.session, event.t)
            case ToolCalled():
                ops.append(_call_op(event, root.name))
            case events.TurnOpened():
                turns.append((event, ops := []))
            case OutputRetrieved():
                attributes = {"mode": event.mode, "charactersOut": event.chars_out} | _describe_event(event)
                ops.append(Op("tool", event.tool, event.t, event.latency, event.status, attributes))
            case JobChanged(state="ready" | "failed" | "cancelled"):
                attributes = {"background": True} | ({"error": event.error} if event.error else {})
                if event.kept:
                    attributes["tool_output_handle"] = handles.handle(root.name, event.id)
                status: Status = "ok" if event.state == "ready" else "failed"
                ops.append(Op("tool", event.tool, event.t, round(event.seconds * 1000), status, attributes))
            case events.AgentStarted():
                ops.append(Op("session", event.tool, event.t, attributes={"session": event.session}))
            case ModelCalled(op=""):
                ops.append(_model_op(event))
            case ModelCalled():
                homes.setdefault(event.op, ops)
                steps.setdefault(event.op, []).append(_model_op(event))
            case events.OutputInspected():
                homes.setdefault(event.op, ops)
                step = Op("tool", event.tool, event.t, event.latency, event.status, {"charactersOut": event.chars_out})
                steps.setdefault(event.op, []).append(step)
            case events.OutputExtracted():
                ops.append(_extraction_op(event, steps.pop(event.op, [])))
            case _:
                pass
    for op, taken in steps.items():  # steps of an extraction that still runs, or whose process died
        homes[op].append(Op("session", "extraction", taken[-1].t, status="failed", children=tuple(taken)))
    for event, below in turns:
        attributes = {"of": event.of} | ({"final": event.final} if event.final else {})
        latency = max((op.t for op in below), default=event.t) - event.t
        first.append(Op("turn", str(event.turn), event.t, latency, attributes=attributes, children=tuple(below)))
    return replace(root, children=tuple(first))


def _describe_event(event: ToolCalled | OutputRetrieved) -> dict[str, Any]:
    names = ("call", "reply", "question")
    return {name: found for name in names if (found := getattr(event, name, None))}


def _call_op(event: ToolCalled, session: str) -> Op:
    attributes: dict[str, Any] = {"charactersIn": event.chars_in, "charactersOut": event.chars_out}
    if event.id:
        attributes |= {"tool_output_handle": handles.handle(session, event.id), "tool_output_reason": event.reason}
    attributes |= _describe_event(event)
    return Op("tool", event.tool, event.t, event.latency, event.status, attributes)


def _extraction_op(event: events.OutputExtracted, steps: list[Op]) -> Op:
    attributes: dict[str, Any] = {"id": handles.artifact_id(event.id), "mode": event.mode}
    if event.status == "failed":
        return Op("session", event.tool, event.t, event.latency, event.status, attributes, tuple(steps))
    attributes |= {
        "strategy": event.strategy,
        "model": event.model,
        "found": event.found,
        "chunks": f"{event.chunks_searched}/{event.chunks_total}",
        "excerpts": len(event.quotes),
    }
    if event.support:
        attributes["support"] = event.support
    if event.fallback:
        attributes["fallback"] = event.fallback
    return Op("session", event.tool, event.t, event.latency, attributes=attributes, children=tuple(steps))


def _model_op(event: ModelCalled) -> Op:
    attributes: dict[str, Any] = {
        "messages": event.messages,
        "requestBytes": event.request_bytes,
        "tokensInEstimated": event.estimated_tokens,
        "tokensIn": event.input_tokens,
        "tokensOut": event.output_tokens,
        "cost": event.cost,
        "response": event.preview or event.error,
    }
    return Op("model", event.model, event.t, event.latency, event.status, attributes)


def accounting(happened: Iterable[Entry], session: str) -> Iterator[dict[str, Any]]:
    """The entries of an accounting file. A call that moves to the background has two: one for its reply, one for its end."""
    for event in happened:
        match event:
            case ToolCalled():
                yield _call_entry(event, session)
            case OutputRetrieved():
                call = ToolCalled(event.t, event.tool, status=event.status, latency=event.latency)
                call = replace(call, chars_in=event.chars_in, chars_out=event.chars_out)
                # Only the id, since the output may belong to another session of the same family.
                details = {"artifact_id": handles.artifact_id(event.id)} if event.id else {}
                details |= {"mode": event.mode} if event.mode else {}
                yield _call_entry(call, session) | ({"details": details} if details else {})
            case JobChanged(state="ready" | "failed" | "cancelled"):
                status: Status = "ok" if event.state == "ready" else "failed"
                call = ToolCalled(event.t, event.tool, event.server, status=status, latency=round(event.seconds * 1000))
                if event.kept:
                    call = replace(call, id=event.id, reason="background", truncated=True)
                yield _call_entry(call, session) | {"background": True}
            case ModelCalled():
                yield _model_entry(event)
            case _:
                pass


def _call_entry(event: ToolCalled, session: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "tool",
        "timestamp": event.t,
        "status": event.status,
        "latency": event.latency,
        "mcpServer": event.server,
        "command": own_name(event.tool, event.server),
        "charactersIn": event.chars_in,
        "charactersOut": event.chars_out,
    }
    if event.id:
        entry["details"] = {
            "tool_output_handle": handles.handle(session, event.id),
            "tool_output_reason": event.reason,
            "truncated": event.truncated,
        }
    return entry


def _model_entry(event: ModelCalled) -> dict[str, Any]:
    provider, _, model = event.model.partition("/")
    entry = {
        "type": "llm",
        "timestamp": event.t,
        "status": event.status,
        "latency": event.latency,
        "provider": provider,
        "model": model,
        "tokens": {"inputTokens": event.input_tokens, "outputTokens": event.output_tokens},
        "costUsd": event.cost,
    }
    return entry | ({"extraction": event.op} if event.op else {})
