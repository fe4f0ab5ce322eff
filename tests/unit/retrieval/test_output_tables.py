"""SQL over the outputs of a session."""

import gzip
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from extras import needs
from waiting import until

from overspill import Session, Settings, SyncSession
from overspill.errors import BadRequest
from overspill.testing import SlowTool
from overspill.wording import retrieval as wording

pytestmark = [pytest.mark.anyio, needs("duckdb", "sql")]

ORDERS = json.dumps({"data": [{"id": n, "user": n % 3, "total": n * 1.5} for n in range(300)]})
USERS = "id,name\n0,Ann\n1,Ben\n2,Eve\n"


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    async with Session(Settings(retention="session")) as opened:
        yield opened


async def ask(session: Session, id: str, query: str) -> tuple[str, bool]:
    reply = await session.invoke("get_tool_output", {"id": id, "mode": "sql", "query": query})
    return reply.text, reply.is_error


@pytest.mark.usefixtures("forked_workers")
async def test_outputs_of_a_session_can_be_joined(session: Session) -> None:
    orders, users = await session.keep(ORDERS, "orders"), await session.keep(USERS, "users")
    answer = await session.sql(
        f"SELECT name, count(*) AS n FROM {orders.name} o JOIN {users.name} u ON u.id = o.user GROUP BY 1 ORDER BY 1"
    )
    assert (answer.columns, answer.rows, answer.total) == (("name", "n"), (("Ann", 100), ("Ben", 100), ("Eve", 100)), 3)


@pytest.mark.slow
async def test_a_model_asks_about_one_output_and_may_name_others(session: Session) -> None:
    orders, users = await session.keep(ORDERS, "orders"), await session.keep(USERS, "users")
    text, is_error = await ask(session, orders.name, f'SELECT max(total) FROM output JOIN {users.name} u ON u.id = "user"')
    assert (text.splitlines()[2], text.splitlines()[-1], is_error) == ("448.5", "[1 row]", False)


@pytest.mark.slow
async def test_a_result_that_does_not_fit_is_stored_and_can_be_queried(session: Session) -> None:
    rows = [{"id": n, "text": "x" * 50} for n in range(2_000)]
    kept = await session.keep(json.dumps(rows), "rows")
    text, _ = await ask(session, kept.name, "SELECT * FROM output WHERE id >= 1000")
    (stored,) = [other for other in session.kept() if other.id != kept.id]
    assert text.endswith(f'All are stored as {stored.name}, which mode="sql" can query.]')
    assert text.splitlines()[-1].startswith("[1,000 rows, of which the first ")
    answer = await session.sql(f"SELECT count(*), min(id), max(id) FROM {stored.name}")
    assert answer.rows == ((1000, 1000, 1999),)


@pytest.mark.slow
async def test_a_mistake_shows_what_there_is(session: Session) -> None:
    kept = await session.keep(ORDERS, "orders")
    text, is_error = await ask(session, kept.name, "SELECT totl FROM output")
    assert is_error
    assert text == (
        "There is no column 'totl'; did you mean 'total'?\nTables:\n"
        "  output: 300 rows (_row VARCHAR, id BIGINT, user BIGINT, total DOUBLE)"
    )


@pytest.mark.slow
async def test_text_without_a_table_names_other_modes(session: Session) -> None:
    kept = await session.keep("Only words.\nAnd more of them.\n", "words")
    text, is_error = await ask(session, kept.name, "SELECT * FROM output")
    assert is_error
    assert 'Use mode="grep" or mode="ask".' in text


async def test_a_query_is_required(session: Session) -> None:
    kept = await session.keep(ORDERS, "orders")
    reply = await session.invoke("get_tool_output", {"id": kept.name, "mode": "sql"})
    assert (reply.text, reply.is_error) == ("SQL needs `query`: one SELECT over the table `output`.", True)


@pytest.mark.slow
@pytest.mark.promise("nobody-elses")
async def test_outputs_of_other_sessions_do_not_exist(session: Session) -> None:
    async with Session(Settings(retention="session")) as other:
        theirs = await other.keep(ORDERS, "orders")
        with pytest.raises(BadRequest, match="does not exist"):
            await session.sql(f"SELECT * FROM {theirs.name}")


@pytest.mark.slow
async def test_compressed_outputs_are_decoded(session: Session) -> None:
    kept = await session.keep(gzip.compress(USERS.encode()), "users")
    assert (await session.sql(f"SELECT count(*) FROM {kept.name}")).rows == ((3,),)


@pytest.mark.slow
async def test_a_running_tool_has_no_table_yet(session: Session) -> None:
    tool = SlowTool(ORDERS)
    id = await session.start("orders", {}, tool)
    await tool.begun()
    assert await ask(session, id, "SELECT 1") == ('Tool not ready. Use get_tool_output(id, mode="wait").', True)
    tool.release()


@pytest.mark.parametrize("names", [["n" * 60_000], [f"{'n' * 50}{each}" for each in range(1_500)]], ids=["long", "many"])
@pytest.mark.usefixtures("forked_workers")
async def test_names_of_columns_that_do_not_fit_are_counted(session: Session, names: list[str]) -> None:
    kept = await session.keep(USERS, "users")
    columns = ", ".join(f'id AS "{name}"' for name in names)
    text, is_error = await ask(session, kept.name, f"SELECT {columns} FROM output")
    assert (len(text) <= (session.settings.answer_max_bytes or 0), is_error) == (True, False)
    *block, columns, rows = text.split("\n")
    shown = block[1].split("\t") if block else []
    assert (shown, len(shown) > 200) == (names[: len(shown)], len(names) > 1)
    assert columns == wording.sql_columns(len(names), len(shown))
    assert rows.startswith("[3 rows, of which the first 0 are shown. All are stored as out_")


@pytest.mark.usefixtures("forked_workers")
async def test_a_result_without_rows_is_not_stored(session: Session) -> None:
    kept = await session.keep(USERS, "users")
    text, _ = await ask(session, kept.name, f'SELECT id AS "{"n" * 60_000}" FROM output WHERE false')
    assert text == "[1 column, of which the first 0 are named.]\n[0 rows]"
    assert [other.id for other in session.kept()] == [kept.id]


@pytest.mark.usefixtures("forked_workers")
async def test_every_value_of_a_row_is_shown_whatever_its_columns_are_called(session: Session) -> None:
    answer = await session.sql("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a, 5 AS a_2")
    assert (answer.columns, answer.rows) == (("a", "a_3", "a_2", "a_4", "a_2_2"), ((1, 2, 3, 4, 5),))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the process in /proc")
async def test_a_process_killed_in_the_middle_of_a_query_is_an_answer(session: Session) -> None:
    kept = await session.keep(USERS, "users")
    await session.sql(f"SELECT count(*) FROM {kept.name}")
    answers: list[tuple[str, bool]] = []

    async def run() -> None:
        answers.append(await ask(session, kept.name, "SELECT count(*) FROM range(100000000000000)"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: find_processes("query"))
        for process in find_processes("query"):
            os.kill(process, signal.SIGKILL)
    ended = "ended without an answer: it was killed, or it failed. There may be too little memory. Ask again, or ask for less."
    assert answers == [(f"The process that runs the query {ended}", True)]
    assert (await session.sql(f"SELECT count(*) FROM {kept.name}")).rows == ((3,),)


def find_processes(kind: str) -> list[int]:
    """Those that load or query, and that this process has started."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and f"worker.py\0{kind}\0" in (each / "cmdline").read_text():
                found.append(int(each.name))
        except (OSError, ValueError):
            continue
    return found


@pytest.mark.slow
def test_one_output_can_be_queried_alone_and_without_an_event_loop() -> None:
    with SyncSession(Settings(retention="session")) as session:
        kept = session.keep(USERS, "users")
        with session.open(kept.name) as stored:
            assert stored.sql("SELECT name FROM output WHERE id = 1").rows == (("Ben",),)
        assert session.sql(f"SELECT count(*) FROM {kept.name}").rows == ((3,),)


@pytest.mark.promise("nothing-silently-cut")
@pytest.mark.slow
async def test_an_answer_from_a_part_of_an_output_says_so(session: Session) -> None:
    packed = gzip.compress(("id,name\n" + "".join(f"{n},n{n}\n" for n in range(50_000))).encode())
    kept = await session.keep(packed[: len(packed) // 2], "users")
    answer = await session.sql(f"SELECT count(*) FROM {kept.name}")
    assert any("Decompressing gzip stopped" in note for note in answer.notes)
    with session.open(kept.name) as stored:
        assert any("Decompressing gzip stopped" in note for note in stored.sql("SELECT count(*) FROM output").notes)


def test_the_last_line_of_a_result_tells_how_much_is_stored() -> None:
    assert wording.sql_rows(3, 3, 3, "") == "[3 rows]"
    assert wording.sql_rows(9, 3, 9, "out_1") == (
        '[9 rows, of which the first 3 are shown. All are stored as out_1, which mode="sql" can query.]'
    )
    assert "The first 5 are stored as out_1" in wording.sql_rows(9, 3, 5, "out_1")


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the process in /proc")
@pytest.mark.promise("no-turn-blocked")
async def test_tables_that_take_long_to_load_do_not_hold_up_the_turn() -> None:
    many = "id,name\n" + "".join(f"{n},n{n}\n" for n in range(300_000))
    async with Session(Settings(asyncTimeoutSecs=0.01, sqlTimeoutSecs=0.01)) as session:
        kept = await session.keep(many, "users")
        reply = await session.invoke("get_tool_output", {"id": kept.name, "mode": "sql", "query": "SELECT count(*) FROM output"})
        assert wording.STILL_LOADING in reply.text
    await until(lambda: not find_processes("load"))
