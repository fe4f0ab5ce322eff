"""A load balancer asks whether the proxy runs and whether it can store outputs. It has no token and calls it by any name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from http_proxy import Listening


@pytest.fixture(params=["works", pytest.param("away", marks=pytest.mark.slow)])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Listening, bool]]:
    away = ["--store", "postgresql://me@127.0.0.1:1/nothing"]
    if request.param == "away":
        pytest.importorskip("psycopg")
    proxy = Listening(tmp_path, *(away if request.param == "away" else []))
    yield proxy, request.param == "works"
    proxy.end()


def test_anyone_may_ask_whether_it_runs_and_is_ready_and_nothing_else(proxy: tuple[Listening, bool]):
    listening, works = proxy
    root = listening.url.removesuffix("/mcp")
    foreign = {"Host": "10.0.0.7:8850"}
    health, ready = (httpx2.get(f"{root}/{path}", headers=foreign) for path in ("health", "ready"))
    assert (health.status_code, health.text) == (200, "ok\n")
    assert (ready.status_code, ready.text) == ((200, "ready\n") if works else (503, "not ready\n"))
    assert httpx2.post(f"{root}/health").status_code == 401
    for path in ("mcp", "healthy", "ready/", ""):
        assert httpx2.get(f"{root}/{path}").status_code == 401
