"""What several stories need: workers that run tools, and a store whose server a test can take away."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from store_servers import S3_BUCKET, S3_KEYS, Relay, require_package
from tool_workers import Workers, running_workers

from overspill import handles
from overspill.store.protocols import Store


@pytest.fixture
def workers(tmp_path: Path, queue_url: str) -> Iterator[Workers]:
    with running_workers(tmp_path, queue_url, str(tmp_path / "store")) as workers:
        yield workers


@pytest.fixture(params=["postgresql", "s3"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Relay]]:
    """A store, and what its requests go through. They have less time than usual, and enough for a busy machine."""
    if request.param == "postgresql":
        require_package("psycopg")
        from overspill.store.postgres.store import PostgresStore  # noqa: PLC0415  # only where the package is

        folder = parse_qs(urlsplit(request.getfixturevalue("postgres_server")).query)["host"][0]
        relay = Relay(socket.AF_UNIX, f"{folder}/.s.PGSQL.5432")
        url = f"postgresql://postgres@127.0.0.1:{relay.port}/postgres"
        store: Store = PostgresStore(url, tenant=handles.new(), answer_seconds=5)
    else:
        require_package("obstore")
        from overspill.store.objects.store import ObjectStore  # noqa: PLC0415  # only where the package is

        relay = Relay(socket.AF_INET, ("127.0.0.1", request.getfixturevalue("s3_server")))
        variables = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{relay.port}", "AWS_ALLOW_HTTP": "true", "AWS_TIMEOUT": "8 seconds"}
        for name, value in {**S3_KEYS, **variables}.items():
            monkeypatch.setenv(name, value)
        store = ObjectStore(f"s3://{S3_BUCKET}/{handles.new()}")
    yield store, relay
    relay.pass_on()
    store.close()
    relay.stop()
