"""Schemas that others send: they fetch nothing, read nothing, and cannot make a check hang."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from overspill.agent.file import OutputKeys
from overspill.agent.report import ReportCheck
from overspill.errors import BadRequest, SettingsError
from overspill.schema import Unchecked, find_flaw, find_misfit, fits_schema
from overspill.schema.check import MAX_WORKERS

SECRET = "the content of a file of yours"  # noqa: S105
EVIL = "^(a+)+$"


def reports(format: Any, schema: Any) -> ReportCheck:
    return ReportCheck(OutputKeys(format, schema))


class Recorder:
    """A web server that has a schema for everybody, also behind a redirect, and notes who comes for it."""

    def __init__(self) -> None:
        requests = self.requests = list[str]()

        class Door(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                self.send_response(302 if self.path == "/redirect" else 200)
                self.send_header("Location", "/schema.json")
                self.end_headers()
                self.wfile.write(json.dumps({"const": SECRET}).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def web() -> Generator[Recorder]:
    recorder = Recorder()
    try:
        yield recorder
    finally:
        recorder.close()


def elsewhere(url: str) -> list[dict[str, Any]]:
    """Ways in which a schema asks for another."""
    base, _, name = url.rpartition("/")
    older = "http://json-schema.org/draft-07/schema#"
    return [
        {"$ref": url},
        {"$dynamicRef": f"{url}#anchor"},
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": f"{base}/", "$ref": name},
        {"$schema": url, "$ref": "#/nowhere"},
        {"$id": f"{base}/", "properties": {"a": {"$id": "below/", "$ref": f"../{name}"}}},
        {"properties": {"a": {"$schema": older, "$id": f"{base}/x", "$ref": name}}},
        {"unevaluatedProperties": {"$ref": f"{url}#/a"}},
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Automatically retrieving")  # which would be an error, and hide what was fetched
def test_no_schema_of_a_server_is_looked_for_on_the_web(web: Recorder) -> None:
    for schema in elsewhere(f"{web.url}/redirect"):
        assert fits_schema(schema)({"a": "b"}) is None
    assert web.requests == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Automatically retrieving")  # which would be an error, and hide what was fetched
def test_no_schema_of_a_server_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text(json.dumps({"const": SECRET}))
    for schema in elsewhere(file.as_uri()):
        assert fits_schema(schema)({"a": "b"}) is None


@pytest.mark.slow
def test_an_agent_whose_reports_need_a_schema_from_elsewhere_is_refused(web: Recorder) -> None:
    for schema in elsewhere(f"{web.url}/schema.json"):
        with pytest.raises(SettingsError, match=r"^output\.schema refers to '.*', which is not in it\.$"):
            reports("json", schema)
    assert web.requests == []


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": EVIL}}},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": EVIL}}},
        {"patternProperties": {"a": {"pattern": EVIL}}},
        {"patternProperties": {EVIL: {"type": "integer"}}},
        {"propertyNames": {"pattern": EVIL}, "required": ["b"]},
        {"patternProperties": {"^(b+)+$": {}}, "additionalProperties": False},
        {"patternProperties": {"^(b+)+$": {}}, "unevaluatedProperties": False},
    ],
)
@pytest.mark.usefixtures("forked_workers")
def test_patterns_are_matched_in_linear_time(schema: dict[str, Any]) -> None:
    wrong = fits_schema(schema)({"a": "a" * 35 + "!", "b" * 35 + "!": 1})
    assert wrong is not None
    assert wrong.startswith("$")


@pytest.mark.slow
def test_a_pattern_is_found_anywhere_in_a_text_as_the_standard_has_it() -> None:
    check = fits_schema({"properties": {"a": {"pattern": "b.d"}}})
    assert check({"a": "abcde"}) is None
    assert check({"a": "a\ud800bcde"}) is None
    assert check({"a": "bd"}) == '$.a breaks the rule {"pattern":"b.d"}.'


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(?=b)"}}},
        {"properties": {"a": {"pattern": r"(.)\1"}}},
        {"properties": {"a": {"pattern": "((x{1,1000}){1,1000}){1,1000}"}}},
        {"properties": {"a": {"pattern": 7}}},
        {"$ref": "#"},
        {"allOf": [{"$dynamicRef": "#"}]},
        nested(5000),
        {"properties": 7},
    ],
)
def test_what_cannot_be_checked_is_left_to_the_server(schema: dict[str, Any]) -> None:
    with pytest.raises(Unchecked):
        find_misfit(schema, {"a": "c"} if "$ref" in schema else deep(100))
    assert fits_schema(schema)(deep(100)) is None


def deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"a": "c"}
    return value if depth == 0 else {"a": "c", "b": value}


@pytest.mark.slow
def test_a_check_that_has_no_end_is_ended() -> None:
    doubling = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(60)}
    for schema in ({"properties": {"a": {"uniqueItems": True}}}, {"$ref": "#/$defs/0", "$defs": {**doubling, "60": {}}}):
        with pytest.raises(Unchecked, match="it is too large or takes too long"):
            find_misfit(schema, {"a": [{"n": n} for n in range(100_000)]})


@pytest.mark.slow
def test_a_large_schema_is_no_hindrance() -> None:
    schema = {"properties": {f"p{n}": {"type": "integer"} for n in range(50_000)}}
    assert fits_schema(schema)({"p7": 7}) is None
    assert fits_schema(schema)({"p7": "seven"}) == '$.p7 breaks the rule {"type":"integer"}.'


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {"pattern": "(?=b)"},
            "output.schema has the pattern '(?=b)', which cannot be used (invalid perl operator: (?=). "
            "Look-around and backreferences do not exist here.",
        ),
        (
            {"patternProperties": {r"(.)\1": {}}},
            "output.schema has the pattern '(.)\\\\1', which cannot be used (invalid escape sequence: \\1). "
            "Look-around and backreferences do not exist here.",
        ),
        (nested(3000), "output.schema cannot be used, because it is nested too deeply."),
    ],
)
@pytest.mark.usefixtures("forked_workers")
def test_an_agent_whose_reports_cannot_be_checked_is_refused(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        reports("json", schema)
    assert str(caught.value) == message


def test_a_report_is_checked_in_linear_time() -> None:
    made = reports("json", {"patternProperties": {EVIL: False}, "properties": {"b": {"pattern": EVIL}}})
    with pytest.raises(BadRequest, match=r"\$\.b: 'a{35}!' does not match"):
        made.submit({"content": {"b": "a" * 35 + "!"}})


def test_a_usable_schema_has_no_flaw() -> None:
    assert find_flaw({"type": "object", "properties": {"a": {"pattern": "^a$"}}, "patternProperties": {"^b": {}}}) == ""


@pytest.mark.usefixtures("forked_workers")
def test_half_a_character_in_a_name_is_no_hindrance() -> None:
    assert fits_schema({"additionalProperties": {"type": "integer"}})({"\ud800": "x"}) == (
        '$[\'\\ud800\'] breaks the rule {"type":"integer"}.'
    )


@pytest.mark.usefixtures("forked_workers")
def test_a_schema_of_no_known_kind_is_not_called_too_large() -> None:
    with pytest.raises(Unchecked, match="the schema cannot be used"):
        find_flaw({"$schema": []})


def count_workers() -> int:
    """How many processes this one has started to check schemas, and are still running."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    started = [child for children in lists for child in read_proc(children).split()]
    return sum(b"worker.py" in read_proc(Path(f"/proc/{child.decode()}/cmdline")) for child in started)


def read_proc(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # a thread or process ended, before the file was opened or after
        return b""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts processes in /proc")
def test_many_checks_start_few_processes() -> None:
    with ThreadPoolExecutor(3 * MAX_WORKERS) as threads:
        checks = [threads.submit(find_misfit, {"type": "integer"}, 1) for _ in range(3 * MAX_WORKERS)]
        most = 0
        while not all(check.done() for check in checks):
            most = max(most, count_workers())
    assert [check.result() for check in checks] == [None] * len(checks)
    assert 0 < most <= MAX_WORKERS


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts processes in /proc")
def test_a_server_whose_schema_takes_long_delays_no_other_server() -> None:
    endless, value = {"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(100_000)]}
    with ThreadPoolExecutor(MAX_WORKERS) as threads:
        checks = [threads.submit(fits_schema(endless, "slow"), value) for _ in range(MAX_WORKERS)]
        while count_workers() < MAX_WORKERS:
            assert not any(check.done() for check in checks)
        assert fits_schema({"properties": {"a": {"type": "integer"}}}, "other")({"a": 1}) is None
        assert not any(check.done() for check in checks)
