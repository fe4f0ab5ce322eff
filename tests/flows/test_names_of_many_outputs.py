"""A worker reads what another one keeps by short names, and the time that takes does not grow with what there is."""

from __future__ import annotations

from typing import Any

import pytest
from every_store import MAKERS

from overspill import Session, handles
from overspill.errors import UnknownHandle
from overspill.store.protocols import Shelf, Store

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover]
BIG = "line of text\n" * 2000


class WatchedStore:
    """Counts the journals that are read from the beginning."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.journals = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_shelf(self, session: str) -> Shelf:
        shelf: Any = self._store.read_shelf(session)
        read = shelf.journal

        def journal() -> Any:
            self.journals += 1
            return read()

        shelf.journal = journal
        return shelf


@pytest.fixture(params=["postgresql", "s3", "azure"])
def store(request: pytest.FixtureRequest) -> Any:
    store = MAKERS[request.param](request)()
    yield WatchedStore(store)
    store.close()


async def test_a_name_or_handle_of_another_worker_is_found_without_reading_its_journal(store: WatchedStore):
    async with Session(name="team", shared=True, store=store) as mine, Session(name="team", shared=True, store=store) as other:
        kept = [await other.keep(f"{number} {BIG}", "dump") for number in range(5)]
        store.journals = 0
        for number, each in enumerate(kept[:3]):
            assert mine.open(each.name).text() == f"{number} {BIG}"
        assert mine.open(kept[3].handle).text() == f"3 {BIG}"
        assert mine.open(kept[4].artifact_id).text() == f"4 {BIG}"
        mine.notice()
        assert store.journals == 0


async def test_names_are_found_only_by_their_owners(store: WatchedStore):
    async with (
        Session(name="team", shared=True, store=store) as other,
        Session(name="else", shared=True, store=store) as stranger,
    ):
        kept = await other.keep(BIG, "dump")
        for spelling in (kept.name, kept.handle, kept.artifact_id):
            with pytest.raises(UnknownHandle):
                stranger.open(spelling)
    async with Session(family="team/nobody", store=store) as stranger:
        with pytest.raises(UnknownHandle):
            stranger.open(kept.name)


async def test_what_is_removed_is_found_no_more(store: WatchedStore):
    async with Session(name="team", shared=True, store=store) as other:
        kept = await other.keep(BIG, "dump")
    store.remove_shelf(kept.session)
    assert store.find_recorded(handles.ending(kept.name)) == []
    async with Session(name="team", shared=True, store=store) as mine:
        with pytest.raises(UnknownHandle):
            mine.open(kept.name)


async def test_names_in_a_bucket_that_has_no_index_of_them_are_found(s3_url: str):
    from overspill.store.objects.bucket import Bucket  # noqa: PLC0415  # only where the package is
    from overspill.store.objects.store import ObjectStore  # noqa: PLC0415

    store = ObjectStore(s3_url)
    async with Session(name="team", shared=True, store=store) as mine, Session(name="team", shared=True, store=store) as other:
        kept = await other.keep(BIG, "dump")
        bucket = Bucket(s3_url)
        bucket.delete([item.key for item in bucket.list("recorded/")])
        for spelling in (kept.name, kept.handle, kept.artifact_id):
            assert mine.open(spelling).text() == BIG
    store.close()


async def test_a_database_without_an_index_of_names_gets_one_and_old_names_are_found(postgres_url: str):
    import psycopg  # noqa: PLC0415  # only where the package is

    from overspill.store.postgres.store import PostgresStore  # noqa: PLC0415

    before = PostgresStore(postgres_url)
    async with Session(name="team", shared=True, store=before) as other:
        old = await other.keep(BIG, "dump")
    before.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE overspill.recorded")
    store = PostgresStore(postgres_url)
    async with Session(name="team", shared=True, store=store) as mine, Session(name="team", shared=True, store=store) as other:
        new = await other.keep("new " + BIG, "dump")
        assert mine.open(old.name).text() == BIG
        assert mine.open(new.name).text() == "new " + BIG
        assert [session for session, _ in store.find_recorded(handles.ending(new.name))] == [new.session]
    store.close()


async def test_a_user_who_may_not_create_the_index_works_without_it(postgres_url: str):
    import psycopg  # noqa: PLC0415  # only where the package is

    from overspill.store.postgres.store import PostgresStore  # noqa: PLC0415

    PostgresStore(postgres_url).shelves()
    role = "limited_" + handles.new().replace("-", "")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")  # pyright: ignore[reportArgumentType]
        connection.execute("DROP TABLE overspill.recorded")
        connection.execute(f"GRANT USAGE ON SCHEMA overspill TO {role}")  # pyright: ignore[reportArgumentType]
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA overspill TO {role}")  # pyright: ignore[reportArgumentType]
        store = PostgresStore(postgres_url.replace("postgres@", f"{role}@"))
        async with (
            Session(name="team", shared=True, store=store) as mine,
            Session(name="team", shared=True, store=store) as other,
        ):
            kept = await other.keep(BIG, "dump")
            assert mine.open(kept.name).text() == BIG
        store.close()
        connection.execute(f"DROP OWNED BY {role}")  # pyright: ignore[reportArgumentType]
        connection.execute(f"DROP ROLE {role}")  # pyright: ignore[reportArgumentType]
