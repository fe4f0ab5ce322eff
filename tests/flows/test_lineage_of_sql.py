"""A result of SQL that is stored itself: what made it is known as long as it is."""

import json
from pathlib import Path

import msgspec
import pytest
from commands import Place
from extras import needs
from viewers import Client, output_path, run_apart, running_viewer

from overspill.record.events import OutputStored, decode_events
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.types import Kept

pytestmark = [needs("duckdb", "sql"), pytest.mark.usefixtures("forked_workers")]

QUERY = "SELECT r.id, text, name\nFROM output r JOIN {users} u ON u.id = r.id % 2 WHERE name <> '<b>'"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, monkeypatch, capsys)


def make_result(root: Path) -> tuple[str, list[Kept], Kept]:
    """The query, what it read, and what it made."""

    async def run() -> tuple[str, list[Kept], Kept]:
        store = FileStore(root)
        async with Session(Settings(retention="keep"), store=store) as session:
            rows = await session.keep(json.dumps([{"id": n, "text": "x" * 50} for n in range(800)]), "rows")
            users = await session.keep("id,name\n0,Ann\n1,Ben\n", "users")
            query = QUERY.format(users=users.name)
            reply = await session.invoke("get_tool_output", {"id": rows.name, "mode": "sql", "query": query})
            assert not reply.is_error, reply.text
            (made,) = [each for each in session.kept() if each.id not in (rows.id, users.id)]
        store.close()
        return query, [users, rows], made

    return run_apart(run)


@pytest.mark.slow
def test_the_query_and_the_sources_of_a_stored_result_can_be_read_later(place: Place) -> None:
    query, sources, made = make_result(place.store)

    (facts,) = json.loads(place.overspill("verify", made.id, "--json").out)
    assert facts["lineage"]["query"] == query
    expected = [[sources[0].name, sources[0].handle, sources[0].sha256], ["output", sources[1].handle, sources[1].sha256]]
    assert [list(each.values()) for each in facts["lineage"]["sources"]] == expected
    code, out, _ = place.overspill("verify")
    assert (code, out.splitlines()[-1]) == (0, "3 checked, 0 changed.")
    assert f"{made.artifact_id} was made by: {' '.join(query.split())}\n" in out
    assert f"  from output: {sources[1].handle}, SHA-256 {sources[1].sha256}\n" in out

    with running_viewer(place.store) as viewer:
        client = Client(viewer).enter()
        page = client.get(output_path(made))
        assert "Made by a query" in page.words
        assert "&lt;b&gt;" in page.text
        assert all(each.sha256 in page.words and each.handle in page.words for each in sources)
        assert "Made by a query" not in client.get(output_path(sources[0])).words


def test_an_output_that_was_stored_before_there_was_a_lineage_has_none(place: Place) -> None:
    (kept,) = place.keep(a="one")
    line = msgspec.json.encode(OutputStored(1, kept))
    written = json.loads(line)
    del written["kept"]["lineage"]
    (event,) = decode_events([json.dumps(written).encode()])
    assert event == OutputStored(1, kept)
