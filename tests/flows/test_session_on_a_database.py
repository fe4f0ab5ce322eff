"""A session whose store is a database: the same as on files, and it goes on while the database is away."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from store_servers import Relay
from waiting import until

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.session.session import Session

pytest.importorskip("psycopg")

from overspill.store.postgres.store import PostgresStore

ROWS = json.dumps([{"id": n, "status": "failed" if n % 100 == 7 else "ok"} for n in range(3000)])


@pytest.fixture
def relay(postgres_server: str) -> Iterator[Relay]:
    folder = parse_qs(urlsplit(postgres_server).query)["host"][0]
    relay = Relay(socket.AF_UNIX, f"{folder}/.s.PGSQL.5432")
    yield relay
    relay.stop()


@pytest.fixture
def store(relay: Relay) -> Iterator[PostgresStore]:
    url = f"postgresql://postgres@127.0.0.1:{relay.port}/postgres"
    store = PostgresStore(url, tenant=handles.new(), answer_seconds=5)
    yield store
    store.close()


async def test_a_large_result_is_stored_asked_queried_and_read_by_a_later_session(store: PostgresStore):
    async with Session(store=store, name="orders") as session:
        reply = await session.call("list_orders", {}, lambda: ROWS)
        assert reply.kept is not None
        answer = await session.invoke("tool_output", {"handle": reply.kept.handle, "extract": "failed orders"})
        assert "failed" in answer.text
        counted = await session.sql(f"SELECT count(*) FROM {reply.kept.name} WHERE status = 'failed'")
        assert "30" in counted.text
        assert session.open(reply.kept.name).grep('"id": 2907,').text
    async with Session(store=store, name="orders") as again:
        assert again.open(reply.kept.handle).text() == ROWS
    async with Session(store=store) as stranger:
        with pytest.raises(UnknownHandle):
            stranger.open(reply.kept.handle)


async def test_while_the_database_is_away_small_results_pass_and_large_ones_say_what_is_not_stored(
    store: PostgresStore, relay: Relay
):
    async with Session(store=store, name="orders") as session:
        before = await session.call("list_orders", {}, lambda: ROWS)
        assert before.kept is not None
        relay.stop()
        small = await session.call("add", {}, lambda: "3")
        assert small.text == "3"
        large = await session.call("list_more", {}, lambda: ROWS + " ")
        assert "does not answer" in large.text
        with pytest.raises(StoreError, match=r"Try again"):
            session.open(before.kept.handle)
        relay.start_again()
        await until(lambda: _can_open(session, before.kept.handle))
        after = await session.call("list_again", {}, lambda: ROWS + "  ")
        assert after.kept is not None
        assert session.open(after.kept.handle).text() == ROWS + "  "


def _can_open(session: Session, handle: str) -> bool:
    try:
        session.open(handle).close()
    except StoreError:
        return False
    return True
