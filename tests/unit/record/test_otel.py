"""Spans and metrics from events, against the SDK's in-memory exporters."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.schemas import Schemas

from overspill import Output
from overspill.models.protocol import Request, Response
from overspill.record.events import Entry, ToolCalled
from overspill.record.logs import carry_trace
from overspill.record.otel import OpenTelemetry
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.open import memory_store
from overspill.store.quota import GIB
from overspill.testing import ScriptedModel

LARGE = "".join(f"line {number} of the secret report\n" for number in range(5000))


class Collected:
    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.observer = OpenTelemetry(self.tracers, MeterProvider([self.reader]))

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.exporter.get_finished_spans() if span.name == name]
        return found

    def metrics(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def open_session(*observers: Any, **options: Any) -> Session:
    return Session(Settings(), store=memory_store(GIB), preload=False, observers=observers, **options)


async def test_a_call_is_a_span_of_the_tool_with_what_was_kept():
    collected = Collected()
    async with open_session(collected.observer) as session:
        await session.call("read_log", {"path": "secret"}, lambda path: LARGE, id="call_7", server="k8s", kind="mcp")
        kept = session.kept()[0]
        id = session.id
    span = collected.span("execute_tool read_log")
    told = dict(span.attributes or {})
    assert told.pop("overspill.shown.tokens") > 0
    assert told == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_log",
        "gen_ai.tool.type": "extension",
        "gen_ai.tool.call.id": "call_7",
        "overspill.server": "k8s",
        "overspill.session": id,
        "overspill.handle": kept.handle,
        "overspill.reason": "size_cap",
        "overspill.bytes": kept.size.bytes,
        "overspill.tokens": kept.size.tokens,
    }
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time <= span.end_time
    (point,) = collected.metrics()["overspill.kept.tokens"]
    assert point.value == kept.size.tokens


async def test_a_failed_call_is_an_error_without_its_text():
    def fail() -> str:
        raise RuntimeError("secret reason")

    collected = Collected()
    async with open_session(collected.observer) as session:
        await session.call("broken", {}, fail)
    span = collected.span("execute_tool broken")
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "RuntimeError"
    assert "secret" not in span.to_json()


async def test_the_type_of_an_error_is_that_of_the_exception():
    class Unreachable(Exception):
        pass

    class Broken(ScriptedModel):
        async def ask(self, request: Request) -> Response:
            raise Unreachable("secret")

    def fail() -> str:
        raise ExceptionGroup("secret", [KeyError("secret")])

    def answer() -> Output:
        return Output(content=[{"type": "text", "text": "secret"}], is_error=True)

    collected, model = Collected(), Broken()
    async with open_session(collected.observer, models={model.name: model}) as session:
        await session.call("grouped", {}, fail)
        await session.call("answered", {}, answer)
        await session.start("nightly", {}, fail)
        kept = await session.keep(LARGE)
        with pytest.raises(KeyError):
            await session.call("raised", {}, lambda: {}["secret"], errors="raise")
        await session.call("refused", {"a": "{{output:out_000000}}"}, lambda a: a)
        await session.invoke("get_tool_output", {"id": "out_000000", "mode": "raw"})
        await session.invoke("tool_output", {"handle": kept.name, "extract": "x", "mode": "nonsense"})
        await session.extract(kept.handle, "what?", models=[model.name])
        await session.stop()
    spans = collected.exporter.get_finished_spans()
    types = {span.name: (span.attributes or {})["error.type"] for span in spans if not span.status.is_ok}
    assert types == {
        "execute_tool grouped": "KeyError",
        "execute_tool answered": "tool_error",  # an answer, which has no exception
        "execute_tool nightly": "KeyError",
        "execute_tool raised": "KeyError",
        "execute_tool refused": "RefError",
        "execute_tool get_tool_output": "UnknownHandle",
        "execute_tool tool_output": "BadRequest",
        "chat scripted": "Unreachable",
    }
    assert all("secret" not in span.to_json() for span in spans)


async def test_a_retrieval_links_to_the_call_that_produced_the_output():
    collected = Collected()
    async with open_session(collected.observer) as session:
        await session.call("read_log", {}, lambda: LARGE)
        await session.invoke("tool_output", {"handle": session.kept()[0].name, "extract": "line 77"})
    made, read = collected.span("execute_tool read_log"), collected.span("execute_tool tool_output")
    assert [link.context.span_id for link in read.links] == [made.get_span_context().span_id]
    assert all("secret" not in span.to_json() for span in collected.exporter.get_finished_spans())


async def test_a_model_that_extracts_is_a_chat_with_its_tokens():
    collected = Collected()
    model = ScriptedModel(["The answer."])
    async with open_session(collected.observer, models={model.name: model}) as session:
        await session.call("read_log", {}, lambda: LARGE)
        await session.extract(session.kept()[0].handle, "what is line 3?", models=[model.name])
    spans = [span for span in collected.exporter.get_finished_spans() if span.name.startswith("chat ")]
    assert spans
    told = dict(spans[0].attributes or {})
    assert told["gen_ai.operation.name"] == "chat"
    assert spans[0].kind is trace.SpanKind.CLIENT
    assert {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.request.model"} <= set(told)
    assert "The answer" not in spans[0].to_json()
    kinds = {point.attributes["gen_ai.token.type"] for point in collected.metrics()["gen_ai.client.token.usage"]}
    assert kinds == {"input", "output"}


async def test_a_span_belongs_to_the_callers_trace():
    collected = Collected()
    async with open_session(collected.observer) as session:
        with collected.tracers.get_tracer("host").start_as_current_span("turn") as turn:
            await session.call("small", {}, lambda: "fits")
    parent = collected.span("execute_tool small").parent
    assert parent is not None
    assert parent.span_id == turn.get_span_context().span_id


@pytest.mark.parametrize("given", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rubbish", "x" * 100_000, 7, None])
async def test_a_span_belongs_to_the_trace_that_a_client_sent(given: Any):
    collected = Collected()
    async with open_session(collected.observer) as session:
        with carry_trace({"traceparent": given}):
            await session.call("small", {}, lambda: "fits")
    parent = collected.span("execute_tool small").parent
    if isinstance(given, str) and given.startswith("00-"):
        assert parent is not None
        assert f"{parent.trace_id:032x}" in given
        assert f"{parent.span_id:016x}" in given
    else:
        assert parent is None


async def test_the_end_of_a_background_job_is_a_span():
    collected = Collected()
    async with open_session(collected.observer) as session:
        await session.start("nightly", {}, lambda: "done")
        await session.stop()
    assert (collected.span("execute_tool nightly").attributes or {})["overspill.background"] is True


async def test_every_name_is_one_of_the_conventions():
    collected = Collected()
    model = ScriptedModel(["The answer."])
    async with open_session(collected.observer, models={model.name: model}) as session:
        await session.call("read_log", {}, lambda: LARGE, id="call_1")
        await session.extract(session.kept()[0].handle, "what?", models=[model.name])
        await session.invoke("tool_output", {"handle": session.kept()[0].name, "extract": "x"})
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    used = {key for span in collected.exporter.get_finished_spans() for key in span.attributes or {}}
    assert {key for key in used if not key.startswith("overspill.")} <= known | {"error.type"}
    measured = {value for value in vars(gen_ai_metrics).values() if isinstance(value, str)}
    assert {name for name in collected.metrics() if not name.startswith("overspill.")} <= measured


async def test_observers_see_every_event_and_one_that_fails_costs_nothing(caplog: pytest.LogCaptureFixture):
    seen: list[tuple[str, Entry]] = []

    def fail(session: str, event: Entry) -> None:
        raise ValueError("secret")

    async with open_session(fail, lambda session, event: seen.append((session, event))) as session:
        reply = await session.call("small", {}, lambda: "fits")
        await session.call("large", {}, lambda: LARGE)
        assert reply.text == "fits"
        assert [event.tool for _, event in seen if isinstance(event, ToolCalled)] == ["small", "large"]
        assert {each for each, _ in seen} == {session.id}
    assert "An observer failed: ValueError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("observers", [7, "print", ["print"], [None]])
def test_what_is_no_observer_is_refused(observers: Any):
    with pytest.raises(Exception, match="observer"):
        Session(observers=observers)


def test_the_page_names_the_version_of_the_conventions_that_is_checked():
    page = (Path(__file__).parents[3] / "docs" / "traces.md").read_text(encoding="utf-8")
    latest = list(Schemas)[-1].value.rpartition("/")[2]
    assert f"semantic conventions {latest}" in page
    assert f"`opentelemetry-semantic-conventions` {version('opentelemetry-semantic-conventions')}" in page
