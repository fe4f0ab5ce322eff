"""Each kind of store there is, for tests that have to hold in all of them. Those that need a server are slow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from overspill import handles
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Store

Make = Callable[..., Store]


def make_postgres(request: pytest.FixtureRequest) -> Make:
    """All tests use one database: what has another tenant is not there."""
    url = request.getfixturevalue("postgres_server")
    from overspill.store.postgres.store import PostgresStore  # noqa: PLC0415  # only where the package is

    return partial(PostgresStore, url, tenant=handles.new())


def make_objects(fixture: str, request: pytest.FixtureRequest) -> Make:
    url = request.getfixturevalue(fixture)
    from overspill.store.objects.store import ObjectStore  # noqa: PLC0415  # only where the package is

    return partial(ObjectStore, url)


MAKERS: dict[str, Callable[[pytest.FixtureRequest], Make]] = {
    "file": lambda request: partial(FileStore, request.getfixturevalue("tmp_path") / "root"),
    "memory": lambda request: MemoryStore,
    "postgresql": make_postgres,
    "s3": partial(make_objects, "s3_url"),
    "azure": partial(make_objects, "azure_url"),
}
_SERVERS = ("postgresql", "s3", "azure")
EVERY_STORE = [pytest.param(name, marks=[pytest.mark.slow] if name in _SERVERS else []) for name in MAKERS]
