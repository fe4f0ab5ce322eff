"""Two proxies over one store, as behind a load balancer: whichever a request reaches, it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_proxy import BOB, Listening, call

pytestmark = pytest.mark.slow
HANDLE = re.compile(r"\bout_[0-9a-z]{6,12}\b|art_\w+")
SETTINGS = ("--set", "asyncTimeoutSecs=0.3", "--set", "waitMaxSecs=20")


@pytest.fixture(params=["file", "postgresql", "s3"])
def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Listening, Listening]]:
    fixture = {"file": "tmp_path", "postgresql": "postgres_url", "s3": "s3_url"}[request.param]
    url = str(request.getfixturevalue(fixture))
    started = [Listening(tmp_path, "--store", url, *SETTINGS) for _ in range(2)]
    yield started[0], started[1]
    for each in started:
        each.end()


def ask(proxy: Listening, name: str, arguments: dict[str, Any], **more: str) -> str:
    answer = httpx2.post(proxy.url, **call(name, arguments, **more))
    answer.raise_for_status()
    found = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    result = (found[-1] if found else answer.json())["result"]
    return result["content"][0]["text"]


@pytest.mark.promise("nothing-lost")
def test_a_handle_from_one_proxy_answers_on_the_other_even_after_the_first_was_killed(replicas: tuple[Listening, Listening]):
    first, second = replicas
    stored = ask(first, "lines", {"count": 5000})
    name = HANDLE.findall(stored)[0]
    asked = {"id": name, "mode": "slice", "slice": {"lines": "4999-5000"}}
    there = ask(second, "get_tool_output", asked)
    assert there == "line 4999: the quick brown fox\nline 5000: the quick brown fox\n"
    assert there == ask(first, "get_tool_output", asked)
    first.process.kill()
    first.process.wait()
    assert ask(second, "get_tool_output", asked) == there
    assert "Unknown" in ask(second, "get_tool_output", asked, Authorization=f"Bearer {BOB}")


def test_a_proxy_that_is_told_to_stop_finishes_its_calls_and_another_reads_their_outputs(tmp_path: Path):
    first = Listening(tmp_path, "--store", str(tmp_path / "store"), "--grace", "60", *SETTINGS)
    file, begun = tmp_path / "go", tmp_path / "begun"
    id = HANDLE.findall(ask(first, "wait", {"then": "the output", "file": str(file), "begun": str(begun)}))[0]
    first.process.terminate()
    second = Listening(tmp_path, "--store", str(tmp_path / "store"), *SETTINGS)
    try:
        asked = {"id": id, "mode": "raw"}
        assert "not ready" in ask(second, "get_tool_output", asked)
        file.touch()
        assert first.process.wait(30) == 0
        assert ask(second, "get_tool_output", asked) == "the output"
    finally:
        first.process.kill()
        first.process.communicate()
        second.end()


def test_a_slow_call_that_one_proxy_runs_is_waited_for_and_read_on_the_other(replicas: tuple[Listening, Listening]):
    first, second = replicas
    id = HANDLE.findall(ask(first, "wait", {"until": "later", "then": "the output"}))[0]
    asked = {"id": id, "mode": "raw"}
    assert "not" in ask(second, "get_tool_output", asked)
    ask(first, "release", {"word": "later"})
    assert id in ask(second, "wait_for_tool_output", {})
    assert ask(second, "get_tool_output", asked) == "the output"
