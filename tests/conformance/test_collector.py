"""Traces and metrics of the proxy, as its documentation starts it, through a real collector process: Rotel, from PyPI."""

from __future__ import annotations

import base64
import gzip
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import PythonHome
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SERVER = """
from mcp.server import MCPServer

app = MCPServer("demo")


@app.tool()
def read_log() -> str:
    return "the content of a log\\n" * 5000


app.run("stdio")
"""
INSTRUMENT = "from opentelemetry.instrumentation.auto_instrumentation import run; run()"
"""What the command `opentelemetry-instrument` does."""
DECODE = """
import json, sys
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
kind = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}[sys.argv[1]]
print(json.dumps(MessageToDict(kind.FromString(sys.stdin.buffer.read()))))
"""


class Backend:
    """Where the collector sends what it has collected."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_packed = self.headers.get("Content-Encoding") == "gzip"
                backend.bodies.append((self.path, gzip.decompress(body) if is_packed else body))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        Thread(target=self.server.serve_forever, daemon=True).start()

    def has(self, name: bytes) -> bool:
        return any(name in body for _, body in list(self.bodies))

    def decode(self, home: Path) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path, body in list(self.bodies):
            done = subprocess.run([home / "python", "-c", DECODE, path], input=body, capture_output=True, check=True)
            found.append(json.loads(done.stdout))
        return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running_collector(home: Path, backend: Backend, folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port at which it takes OTLP over HTTP."""
    [program] = home.parent.glob("lib/python*/site-packages/rotel/rotel-agent")
    port = free_port()
    options = ["--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}"]
    options += ["--exporter", "otlp", "--otlp-exporter-protocol", "http"]
    options += ["--otlp-exporter-endpoint", f"http://127.0.0.1:{backend.port}"]
    with (folder / "collector.log").open("wb") as log:
        process = subprocess.Popen([program, "start", *options], stdout=log, stderr=log, cwd=folder)
    try:
        yield port, process
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.server.shutdown()
    made.server.server_close()


async def test_the_proxy_sends_its_traces_and_metrics_through_a_collector(python: PythonHome, backend: Backend, tmp_path: Path):
    home = python("collector")
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    [packages] = home.parent.glob("lib/python*/site-packages")
    with running_collector(home, backend, tmp_path) as (port, collector):
        await until(lambda: answers(port) or collector.poll() is not None)
        assert collector.poll() is None, (tmp_path / "collector.log").read_text()
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(packages),
            "OTEL_SERVICE_NAME": "proxy-under-test",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }
        overspill = Path(sys.executable).with_name("overspill")
        command = ["-c", INSTRUMENT, str(overspill), "proxy", "--", sys.executable, str(server)]
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=command, env=env))) as client:
            await client.call_tool("read_log", {}, meta={"traceparent": f"00-{TRACE}-{PARENT}-01"})
            await until(lambda: backend.has(b"execute_tool read_log") and backend.has(b"overspill.kept.tokens"), within=60)
    found = backend.decode(home)
    [span] = [span for span in list_spans(found) if span["name"] == "execute_tool read_log"]
    assert base64.b64decode(span["traceId"]).hex() == TRACE
    assert base64.b64decode(span["parentSpanId"]).hex() == PARENT
    told = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
    assert told["gen_ai.operation.name"] == "execute_tool"
    assert told["gen_ai.tool.name"] == "read_log"
    assert told["overspill.bytes"] == str(len("the content of a log\n" * 5000))
    assert told["overspill.handle"].startswith("session-")
    assert "overspill.kept.tokens" in list_metrics(found)
    assert "proxy-under-test" in json.dumps(found)
    assert not any(b"the content of a log" in body for _, body in backend.bodies)


def list_spans(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    scopes = [scope for each in found for resource in each.get("resourceSpans", []) for scope in resource["scopeSpans"]]
    return [span for scope in scopes for span in scope["spans"]]


def list_metrics(found: list[dict[str, Any]]) -> set[str]:
    scopes = [scope for each in found for resource in each.get("resourceMetrics", []) for scope in resource["scopeMetrics"]]
    return {metric["name"] for scope in scopes for metric in scope["metrics"]}
