"""A session as a tree of operations: calls, retrievals, and extractions with each of their steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from overspill import handles
from overspill.record.events import (
    AgentStarted,
    Entry,
    JobChanged,
    ModelCalled,
    OutputExtracted,
    OutputInspected,
    OutputRetrieved,
    SessionOpened,
    Status,
    ToolCalled,
    TurnOpened,
)

OpKind: TypeAlias = Literal["session", "turn", "tool", "model"]


class Op(Struct, frozen=True, omit_defaults=True):
    """The `kind` session is work with several steps: the whole session, an extraction, or the session of an agent that was called
    as a tool."""

    kind: OpKind
    name: str
    t: int
    """When it ended, in Unix milliseconds; for a session or a turn, when it began."""
    latency: int = 0
    status: Status = "ok"
    attributes: dict[str, Any] = {}
    children: tuple[Op, ...] = ()


def op_tree(events: Iterable[Entry]) -> Op:
    """Build the tree from a journal. Requests are figures only; of answers, there is the recorded beginning."""
    root = Op("session", "", 0)
    steps: dict[str, list[Op]] = {}
    homes: dict[str, list[Op]] = {}
    turns: list[tuple[TurnOpened, list[Op]]] = []
    first: list[Op] = []
    ops = first
    for event in events:
        match event:
            case SessionOpened():
                root = Op("session", event.session, event.t)
            case ToolCalled():
                ops.append(_call_op(event, root.name))
            case TurnOpened():
                turns.append((event, ops := []))
            case OutputRetrieved():
                attributes = {"mode": event.mode, "charactersOut": event.chars_out} | _describe_event(event)
                ops.append(Op("tool", event.tool, event.t, event.latency, event.status, attributes))
            case JobChanged(state="ready" | "failed"):
                ops.append(_finish_op(event, root.name))
            case AgentStarted():
                ops.append(Op("session", event.tool, event.t, attributes={"session": event.session}))
            case ModelCalled(op=""):
                ops.append(_model_op(event))
            case ModelCalled() | OutputInspected():
                homes.setdefault(event.op, ops)
                steps.setdefault(event.op, []).append(
                    _model_op(event) if isinstance(event, ModelCalled) else _inspection_op(event)
                )
            case OutputExtracted():
                ops.append(_extraction_op(event, steps.pop(event.op, [])))
            case _:
                pass
    for op, taken in steps.items():  # of an extraction that still runs, or whose process died
        homes[op].append(Op("session", "extraction", taken[-1].t, status="failed", children=tuple(taken)))
    return msgspec.structs.replace(root, children=(*first, *(_turn_op(event, below) for event, below in turns)))


def _turn_op(event: TurnOpened, ops: list[Op]) -> Op:
    attributes = {"of": event.of} | ({"final": event.final} if event.final else {})
    latency = max((op.t for op in ops), default=event.t) - event.t
    return Op("turn", str(event.turn), event.t, latency, attributes=attributes, children=tuple(ops))


def _finish_op(event: JobChanged, session: str) -> Op:
    attributes: dict[str, Any] = {"background": True}
    if event.error:
        attributes["error"] = event.error
    if event.kept:
        attributes["tool_output_handle"] = handles.handle(session, event.id)
    status: Status = "failed" if event.state == "failed" else "ok"
    return Op("tool", event.tool, event.t, round(event.seconds * 1000), status, attributes)


def _describe_event(event: ToolCalled | OutputRetrieved) -> dict[str, Any]:
    call = {"call": event.call} if event.call else {}
    return call | ({"reply": event.reply} if event.reply else {})


def _call_op(event: ToolCalled, session: str) -> Op:
    attributes: dict[str, Any] = {"charactersIn": event.chars_in, "charactersOut": event.chars_out}
    if event.id:
        attributes |= {"tool_output_handle": handles.handle(session, event.id), "tool_output_reason": event.reason}
    attributes |= _describe_event(event)
    return Op("tool", event.tool, event.t, event.latency, event.status, attributes)


def _extraction_op(event: OutputExtracted, steps: list[Op]) -> Op:
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


def _inspection_op(event: OutputInspected) -> Op:
    return Op("tool", event.tool, event.t, event.latency, event.status, {"charactersOut": event.chars_out})


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
