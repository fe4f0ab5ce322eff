"""A query reads the tables that were loaded and nothing else, whatever DuckDB calls a SELECT and wherever it may write."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from packages import PYTHON, Unavailable, python_home

from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader

duckdb = pytest.importorskip("duckdb", reason="the extra 'sql' is not installed: pip install '.[sql]'")

has_landlock = pytest.mark.skipif(
    sys.platform != "linux" or ctypes.CDLL(None).syscall(444, None, 0, 1) < 1, reason="this system has no Landlock"
)
TESTS = Path(__file__).parents[2]
TABLE = b"id,name\n1,a\n2,b\n3,c\n4,d\n"
SECRET = "the-words-of-a-file-that-nobody-may-read"  # noqa: S105

USE_UP_LANDLOCK = """
import ctypes, os, struct, sys
if sys.platform == "linux":
    call = ctypes.CDLL(None).syscall
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    rules = call(444, struct.pack("=QQ", 1, 0), ctypes.c_long(16), 0)
    call(445, rules, 1, struct.pack("=Qi", 1, os.open("/", os.O_RDONLY)), 0)
    for _ in range(16):  # there can be no more on top of each other; each allows what it could forbid
        call(446, rules, 0)
"""
QUERY = """
import json, sys
import duckdb
from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader
answers = [duckdb.__version__]
with SqlLibrary() as library:
    for statement in sys.argv[1:]:
        found = library.query(statement, {"output": Source("key", BytesReader(b"id,name\\n1,a\\n2,b\\n"))}, 60)
        answers.append(found.result.failed or found.lines.decode())
print(json.dumps(answers))
"""
ATTACK = """
import json, os, sys
import duckdb
from overspill.sql.protocol import LoadedTables, QueryRequest, SqlDatabase
from overspill.sql.querying import open_tables
import msgspec
loaded, file, folder = msgspec.json.decode(sys.argv[1], type=LoadedTables), sys.argv[2], sys.argv[3]
os.chdir(folder)
os.mkdir("spill")
request = QueryRequest("", (SqlDatabase.of(loaded, file, "output"),), folder, 60)
connection = open_tables(request)
answers = []
for statement in sys.argv[4:]:
    try:
        answers.append(str(connection.execute(statement).fetchall()))
    except Exception as error:
        answers.append(type(error).__name__)
try:
    open("/etc/passwd")
except OSError as error:
    answers.append(type(error).__name__)
print(json.dumps(answers))
"""


@pytest.fixture
def library() -> Iterator[SqlLibrary]:
    with SqlLibrary() as opened:
        yield opened


@pytest.fixture
def source() -> dict[str, Source]:
    return {"output": Source("key", BytesReader(TABLE))}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.csv"
    file.write_text(f"a,b\n{SECRET},1\n")
    return file


def make_trap(file: Path, secret: Path, *, kind: str = "VIEW") -> bytes:
    """A database whose `output` has what is in another file."""
    with duckdb.connect(file) as connection:
        connection.execute(f"CREATE {kind} output AS SELECT 1 AS _row, 1 AS id, a AS name FROM read_csv('{secret}')")
    return file.read_bytes()


@pytest.mark.slow
def test_a_query_cannot_replace_the_tables_of_later_queries(library: SqlLibrary, source: dict[str, Source], secret: Path):
    library.load(source["output"])
    (file,) = library.folder().glob("*.db")
    trap = make_trap(secret.with_name("trap.db"), secret)
    before = file.read_bytes()
    content = "".join(f"\\x{byte:02x}" for byte in trap[:2000])
    for statement in (
        "SELECT path FROM duckdb_databases()",
        f"WITH x AS (COPY (SELECT '{content}'::BLOB AS b) TO '{file}' (FORMAT blob)) SELECT 1",
        f"WITH x AS (COPY (SELECT * FROM range(1000)) TO '{file}.wal' (FORMAT csv)) SELECT 1",
    ):
        found = library.query(statement, source, 30)
        assert "is not possible here" in found.result.failed
        assert str(file) not in found.result.failed
    assert file.read_bytes() == before
    assert sorted(other.name for other in file.parent.iterdir()) == [file.name]
    assert library.query("SELECT count(*) AS n FROM output", source, 30).lines == b'{"n": 4}\n'


@pytest.mark.parametrize("kind", ["VIEW", "TABLE"])
def test_a_database_that_somebody_else_wrote_is_not_read(kind: str, library: SqlLibrary, source: dict[str, Source], secret: Path):
    library.load(source["output"])
    (file,) = library.folder().glob("*.db")
    file.write_bytes(make_trap(secret.with_name("trap.db"), secret, kind=kind))
    found = library.query("SELECT * FROM output", source, 30)
    assert (found.result.failed, found.lines) == (
        "The loaded tables have changed since they were loaded, so they are not used. Ask in a new session.",
        b"",
    )


@pytest.mark.parametrize(
    "columns", ["range AS id, 'a' AS names", "'1' AS id, 'a' AS name", "range AS id, 'a' AS name, 1 AS more"]
)
def test_a_table_with_other_columns_is_not_read(columns: str, library: SqlLibrary, source: dict[str, Source]):
    library.load(source["output"])
    (file,) = library.folder().glob("*.db")
    with duckdb.connect(file) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE output AS SELECT {columns} FROM range(4)")
    assert "have changed since" in library.query("SELECT * FROM output", source, 30).result.failed


@pytest.mark.slow
@pytest.mark.parametrize("landlock", [pytest.param(True, marks=has_landlock), False], ids=["with-landlock", "without-landlock"])
def test_what_passes_for_a_select_still_opens_nothing(
    landlock: bool, library: SqlLibrary, source: dict[str, Source], tmp_path: Path
):
    """Even if a statement of another kind were taken for one that reads."""
    loaded, _ = library.load(source["output"])
    (file,) = library.folder().glob("*.db")
    before = file.read_bytes()
    statements = (
        "SELECT count(*) FROM output",
        f"COPY (SELECT 1) TO '{file}'",
        f"COPY (SELECT 1) TO '{file}' (FORMAT csv, USE_TMP_FILE false)",
        f"COPY (SELECT 1) TO '{file}.wal' (FORMAT csv, USE_TMP_FILE false)",
        f"SELECT * FROM read_blob('{file}')",
        f"ATTACH '{file}' AS again",
        "SET enable_external_access = true",
        "SELECT count(*) FROM output JOIN range(5) ON range = id",
    )
    arguments = [json.dumps(msgspec.to_builtins(loaded)), str(file), str(tmp_path), *statements]
    code = ATTACK if landlock else USE_UP_LANDLOCK + ATTACK
    first, *refused, last, opened = run(code, *arguments)
    assert (first, last) == ("[(4,)]", "[(4,)]")
    assert [answer for answer in refused if not answer.endswith("Exception")] == []
    assert opened == ("PermissionError" if landlock else "OSError")
    assert file.read_bytes() == before
    assert not file.with_name(f"{file.name}.wal").exists()


@pytest.mark.slow
def test_without_landlock_a_query_cannot_spill_and_says_what_it_lacks():
    statement = "SELECT count(*) AS n FROM (SELECT * FROM range({}) ORDER BY hash(range) OFFSET 1)"
    _, small, large = run(USE_UP_LANDLOCK + QUERY, statement.format(1_000), statement.format(60_000_000))
    assert small == '{"n": 999}\n'
    assert large == "The query needs more memory than it may use. Select fewer rows or columns, or sort and group less."


@pytest.mark.slow
def test_every_kind_of_statement_is_refused_wherever_it_stands_and_every_way_to_read_is_not():
    version, *mistakes = run_file(TESTS / "sql_statements.py")
    assert (version, mistakes) == (duckdb.__version__, [])


@pytest.mark.slow
def test_every_kind_of_statement_is_refused_by_the_lowest_duckdb_too(lowest: Path):
    version, *mistakes = run_file(TESTS / "sql_statements.py", lowest)
    assert (version, mistakes) == ("1.3.0", [])


@pytest.mark.slow
def test_the_lowest_duckdb_answers_and_opens_nothing(lowest: Path, secret: Path):
    version, *answers = run(
        QUERY,
        "SELECT sum(id) AS n FROM output",
        f"SELECT * FROM read_csv('{secret}')",
        "SELECT count(*) AS n FROM (SELECT * FROM range(1000000) ORDER BY hash(range) OFFSET 1)",
        "SELECT 1.5::DECIMAL(10, 2) AS d, '00000000-0000-0000-0000-000000000001'::UUID AS u, DATE '2020-01-01' AS t",
        "SELECT version() AS v",
        packages=lowest,
    )
    assert version == "1.3.0"
    assert answers == [
        '{"n": 3}\n',
        "The function 'read_csv' is not possible here: a statement reads only the loaded tables.",
        '{"n": 999999}\n',
        '{"d": "1.50", "u": "00000000-0000-0000-0000-000000000001", "t": "2020-01-01"}\n',
        '{"v": "v1.3.0"}\n',
    ]


def test_only_the_compiled_module_of_duckdb_is_imported_if_it_can_be():
    imported = run("import json, sys; import overspill.sql.loading; print(json.dumps(list(sys.modules)))")
    assert "_duckdb" not in imported or "duckdb" not in imported


@pytest.fixture(scope="session")
def lowest() -> Path:
    """The packages of the lowest DuckDB that `pyproject.toml` allows."""
    assert PYTHON["duckdb-lowest"] == ("duckdb==1.3.0",)
    assert 'sql = ["duckdb>=1.3"]' in (TESTS.parent / "pyproject.toml").read_text()
    try:
        (packages,) = python_home("duckdb-lowest").glob("lib/python*/site-packages")
    except Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    return packages


def run(code: str, *arguments: str, packages: Path | None = None) -> list[str]:
    return json.loads(_run(["-c", code, *arguments], packages))


def run_file(file: Path, packages: Path | None = None) -> list[str]:
    return _run([str(file)], packages).splitlines()


def _run(arguments: list[str], packages: Path | None) -> str:
    """In a process of its own, with these packages before the others."""
    environment = {**os.environ, "PYTHONPATH": str(packages)} if packages else None
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment).stdout


ASK_ELSEWHERE = """
from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader
with SqlLibrary() as library:
    table = BytesReader(b"id,name\\n1,a\\n2,b\\n3,c\\n4,d\\n")
    print(library.query("SELECT sum(id) FROM t", {"t": Source("k", table)}, 60).lines)
"""
HOOK = """
import importlib.machinery, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        is_duckdb = path is None and name in ("duckdb", "_duckdb")
        return importlib.machinery.PathFinder.find_spec(name, [FOLDER]) if is_duckdb else None
sys.meta_path.append(Finder)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["PYTHONPATH", "user site", ".pth file", "working directory", "import hook"])
def test_the_process_finds_duckdb_wherever_the_program_finds_it(tmp_path: Path, way: str):
    packages, duck, start = tmp_path / "packages", tmp_path / "duck", tmp_path / "start"
    user = tmp_path / f"user/lib/python3.{sys.version_info.minor}/site-packages"
    for folder in (packages, duck, start, user):
        folder.mkdir(parents=True)
    for each in Path(duckdb.__file__).parents[1].iterdir():
        (duck if "duckdb" in each.name else packages).joinpath(each.name).symlink_to(each)
    (packages / "overspill").unlink(missing_ok=True)
    (packages / "overspill").symlink_to(TESTS.parent / "src/overspill")
    if way == "user site":
        user.rmdir()
        user.symlink_to(duck)
    elif way == ".pth file":
        (user / "duck.pth").write_text(f"{duck}\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONUSERBASE": str(tmp_path / "user")}
    environ["PYTHONPATH"] = f"{packages}:{duck}" if way == "PYTHONPATH" else str(packages)
    code = (HOOK.replace("FOLDER", repr(str(duck))) if way == "import hook" else "") + ASK_ELSEWHERE
    # Not in an environment of its own, which would have the packages and no user site.
    command = [getattr(sys, "_base_executable", sys.executable), "-c", code]
    cwd = duck if way == "working directory" else start
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd=cwd)
    assert '"sum(id)": 10' in done.stdout, done.stderr
