"""OpenTelemetry spans and metrics, made from events. Names follow the semantic conventions for generative AI. No content."""

from __future__ import annotations

from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from overspill import handles
from overspill.record.bill import count_tokens
from overspill.record.events import Entry, JobChanged, ModelCalled, OutputExtracted, OutputRetrieved, OutputStored, ToolCalled
from overspill.record.logs import trace_context
from overspill.store.recent import Recent
from overspill.types import Kept

_NAME = "overspill"
_MAX_REMEMBERED = 4_096
"""Stored outputs whose calls spans can link to."""
_NS_PER_MS = 1_000_000
_NO_EXCEPTION = "tool_error"
"""The type of an error that a tool returned as its answer, as named in the conventions for MCP."""


class OpenTelemetry:
    """An observer: `Session(observers=[OpenTelemetry()])`. Without providers, the ones that your program configured are used."""

    def __init__(
        self, tracer_provider: trace.TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of requests to models.")
        self._duration = meter.create_histogram("gen_ai.client.operation.duration", "s", "How long operations took.")
        self._kept = meter.create_counter("overspill.kept.tokens", "{token}", "Tokens of stored outputs.")
        self._shown = meter.create_counter("overspill.shown.tokens", "{token}", "Tokens shown of stored outputs, estimated.")
        self._outputs: Recent[str, tuple[Kept, SpanContext | None]] = Recent(_MAX_REMEMBERED, lambda _: 1)

    def __call__(self, session: str, event: Entry) -> None:
        match event:
            case OutputStored(kept=kept):
                self._outputs[kept.id] = kept, None
                self._kept.add(kept.size.tokens, {"gen_ai.tool.name": kept.tool, "overspill.reason": kept.reason})
            case ToolCalled():
                attributes = _describe_tool(event.tool, event.kind == "mcp", event.call)
                if event.server:
                    attributes["overspill.server"] = event.server
                if event.truncated or event.id:
                    attributes["overspill.shown.tokens"] = count_tokens(event)
                    self._shown.add(count_tokens(event), {"gen_ai.tool.name": event.tool})
                self._trace_call(session, event, event.latency, event.status, attributes)
            case OutputRetrieved():
                attributes = _describe_tool(event.tool, False, event.call)
                attributes |= {"overspill.mode": event.mode, "overspill.shown.tokens": count_tokens(event)}
                if kept := self._find_kept(event.id):
                    attributes |= _describe_output(kept)
                    self._shown.add(count_tokens(event), {"gen_ai.tool.name": kept.tool})
                links = self._find_links(event.id)
                self._record(f"execute_tool {event.tool}", session, event, event.latency, event.status, attributes, links)
            case JobChanged(state="ready" | "failed" | "cancelled"):
                # The end of a call that kept running in the background. The span of the call itself ended with its reply.
                attributes = {**_describe_tool(event.tool, False, ""), "overspill.background": True}
                status = "ok" if event.state == "ready" else "failed"
                self._trace_call(session, event, round(event.seconds * 1000), status, attributes)
            case ModelCalled():
                self._trace_model(session, event)
            case OutputExtracted():
                attributes = {"overspill.mode": event.mode, "overspill.strategy": event.strategy, "overspill.found": event.found}
                attributes |= {"overspill.quotes": len(event.quotes), "gen_ai.request.model": event.model}
                links = self._find_links(event.id)
                self._record("overspill.extract", session, event, event.latency, event.status, attributes, links)
            case _:
                pass

    def _trace_call(
        self, session: str, event: ToolCalled | JobChanged, latency: int, status: str, attributes: dict[str, Any]
    ) -> None:
        if kept := self._find_kept(event.id):
            attributes |= _describe_output(kept)
        made = self._record(f"execute_tool {event.tool}", session, event, latency, status, attributes)
        if kept:
            self._outputs[kept.id] = kept, made

    def _trace_model(self, session: str, event: ModelCalled) -> None:
        provider, _, model = event.model.partition("/")
        told = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model or provider}
        usage = {"gen_ai.usage.input_tokens": event.input_tokens, "gen_ai.usage.output_tokens": event.output_tokens}
        cost = {} if event.cost is None else {"overspill.cost.usd": event.cost}
        name = f"chat {told['gen_ai.request.model']}"
        self._record(name, session, event, event.latency, event.status, {**told, **usage, **cost}, kind=SpanKind.CLIENT)
        self._tokens.record(event.input_tokens, {**told, "gen_ai.token.type": "input"})
        self._tokens.record(event.output_tokens, {**told, "gen_ai.token.type": "output"})
        self._duration.record(event.latency / 1000, told)

    def _record(
        self,
        name: str,
        session: str,
        event: Entry,
        latency: int,
        status: str,
        attributes: dict[str, Any],
        links: list[Link] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> SpanContext:
        """A span that has ended: what happened is known only when it is over."""
        carried = trace_context.get()  # the span that the client sent, used if there is no current one
        is_inside = trace.get_current_span().get_span_context().is_valid
        parent = TraceContextTextMapPropagator().extract(carried) if carried and not is_inside else None
        began, ended = (event.t - latency) * _NS_PER_MS, event.t * _NS_PER_MS
        span = self._tracer.start_span(name, parent, kind, {**attributes, "overspill.session": session}, links, start_time=began)
        if status == "failed":
            span.set_attribute("error.type", getattr(event, "error_type", "") or _NO_EXCEPTION)
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)
        return span.get_span_context()

    def _find_kept(self, id: str) -> Kept | None:
        return found[0] if (found := self._outputs.get(id)) else None

    def _find_links(self, id: str) -> list[Link]:
        _, made = self._outputs.get(id) or (None, None)
        return [Link(made)] if made is not None else []


def _describe_tool(tool: str, is_foreign: bool, call: str) -> dict[str, Any]:
    kind = "extension" if is_foreign else "function"
    told: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": kind}
    return told | ({"gen_ai.tool.call.id": call} if call else {})


def _describe_output(kept: Kept) -> dict[str, Any]:
    return {
        "overspill.handle": handles.handle(kept.session, kept.id),
        "overspill.reason": kept.reason,
        "overspill.bytes": kept.size.bytes,
        "overspill.tokens": kept.size.tokens,
    }
