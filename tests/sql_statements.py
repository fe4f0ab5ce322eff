"""Statements that only read, and every other kind at every place where one could stand; run by its path for another DuckDB."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import duckdb

from overspill.sql.statements import Refused, check_statement

TABLES = ("output", "output_2")
READS = (
    "SELECT 1",
    "SELECT DISTINCT ON (id) id FROM output WHERE id BETWEEN 1 AND 2 OR name NOT IN ('x') ORDER BY 1 DESC LIMIT 10",
    "SELECT id FROM output LIMIT 50 PERCENT",
    "SELECT * EXCLUDE (id) REPLACE (upper(name) AS name) FROM output",
    "SELECT COLUMNS('id|name') FROM output",
    "SELECT [x + 1 FOR x IN [1, 2] IF x > 1]",
    "SELECT list_transform([1, 2], lambda x: x + 1)",
    "SELECT {'class': 'COPY', 'type': 'COPY_QUERY_NODE', 'function_name': 'read_text'}, MAP {'cte_map': 1}, (1, 2), [1][1]",
    "SELECT CASE id WHEN 1 THEN 2 ELSE 3 END, id::DECIMAL(10, 2)[], TRY_CAST(name AS DATE), name COLLATE NOCASE FROM output",
    "SELECT 'a'::ENUM('a', 'b'), {'a': 1}::STRUCT(a INT), INTERVAL 1 DAY, DATE '2020-01-01'",
    "SELECT EXISTS (SELECT 1), (SELECT 1), id = ANY (SELECT 1), id IN (SELECT id FROM output), ARRAY(SELECT 1) FROM output",
    "SELECT sum(id) OVER (ORDER BY id ROWS 1 PRECEDING), lag(id) OVER w FROM output WINDOW w AS (ORDER BY id)",
    "SELECT name, count(*) FILTER (WHERE id > 1) FROM output GROUP BY ALL HAVING count(*) > 0 ORDER BY ALL",
    "SELECT name, grouping(name) FROM output GROUP BY GROUPING SETS ((name), ())",
    "SELECT id FROM output QUALIFY row_number() OVER (ORDER BY id) = 1",
    "SELECT * FROM output a JOIN output_2 b USING (id) LEFT JOIN output c ON c.id = a.id CROSS JOIN output d",
    "SELECT * FROM output a ASOF JOIN output b ON a.id >= b.id",
    "SELECT * FROM output POSITIONAL JOIN output b",
    "SELECT * FROM output SEMI JOIN output b USING (id)",
    "SELECT * FROM output, LATERAL (SELECT id + 1), unnest([id, 2]) AS x(y)",
    "SELECT * FROM range(3), generate_series(1, 2), repeat('x', 2), json_each('[1]'), json_tree('[1]')",
    "SELECT #2 FROM output ORDER BY #1",
    "SELECT * FROM (VALUES (1, 'a')) AS x(a, b)",
    "VALUES (1), (2)",
    "TABLE output",
    "FROM output",
    "FROM Main.OUTPUT SELECT id WHERE id > 1",
    "WITH x AS (SELECT 1), y AS MATERIALIZED (FROM x), output AS (SELECT 5) SELECT * FROM X, y, output",
    "WITH tables AS (SELECT 1), columns AS (FROM tables) FROM columns",
    "WITH RECURSIVE r(n, m) USING KEY (n) AS (SELECT 1, 2 UNION SELECT n + 1, m FROM recurring.r WHERE n < 5) FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT 1 UNION SELECT 2 UNION ALL SELECT 3 INTERSECT SELECT 4 EXCEPT SELECT 5 ORDER BY 1",
    "SELECT 1 AS a UNION ALL BY NAME SELECT 2 AS b",
    "SELECT * FROM output USING SAMPLE 10%",
    "SELECT * FROM output TABLESAMPLE reservoir(3 ROWS) REPEATABLE (42)",
    "PIVOT output ON id IN (1, 2) USING count(*) GROUP BY name",
    "UNPIVOT output ON id INTO NAME n VALUE v",
    "DESCRIBE output",
    "DESCRIBE SELECT * FROM output",
    "DESCRIBE",
    "SHOW output",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SUMMARIZE output",
    "SELECT * FROM (SUMMARIZE FROM output), (SHOW TABLES)",
    """SELECT '{"a": 1}'->'a', '{"a": 1}'->>'$.a', json_extract('{"a": 1}', '$.a')""",
    "SELECT string_agg(name, ',' ORDER BY id), quantile_cont(id, 0.5), name.upper().lower() FROM output GROUP BY name",
    "SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables USING (table_name)",
    "SELECT * FROM duckdb_columns(), pragma_table_info('output')",
    "SELECT " + " || ".join(["'x'"] * 900),
)
OTHERS = (
    "COPY output TO 'x.db'",
    "COPY (SELECT 1) TO 'x.db' (FORMAT csv)",
    "COPY output FROM 'x.db'",
    "COPY FROM DATABASE memory TO loaded0",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "ATTACH 'x.db' AS x",
    "DETACH loaded0",
    "USE loaded0",
    "CREATE TABLE x AS SELECT 1",
    "CREATE OR REPLACE VIEW output AS SELECT 1",
    "CREATE MACRO f() AS TABLE FROM read_text('x')",
    "CREATE SECRET s (TYPE s3)",
    "CREATE SEQUENCE s",
    "CREATE SCHEMA s",
    "CREATE TYPE t AS ENUM ('a')",
    "CREATE INDEX i ON output (id)",
    "INSERT INTO output VALUES (1)",
    "INSERT INTO output VALUES (1) RETURNING *",
    "INSERT OR REPLACE INTO output FROM output",
    "UPDATE output SET id = 1",
    "UPDATE output SET id = 1 RETURNING *",
    "DELETE FROM output",
    "DELETE FROM output RETURNING *",
    "MERGE INTO output USING output_2 ON output.id = output_2.id WHEN MATCHED THEN DELETE",
    "TRUNCATE output",
    "DROP VIEW output",
    "ALTER TABLE output ADD COLUMN x int",
    "COMMENT ON VIEW output IS 'x'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "UPDATE EXTENSIONS",
    "SET threads = 9",
    "SET VARIABLE x = 1",
    "RESET ALL",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "CALL enable_logging()",
    "FORCE CHECKPOINT memory",
    "VACUUM ANALYZE",
    "BEGIN TRANSACTION",
    "COMMIT TRANSACTION",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "PIVOT output ON id USING count(*)",
)
TABLES_OF_OTHERS = (
    "arrow_scan(1, 2, 3)",
    "checkpoint()",
    "duckdb_databases",
    "duckdb_databases()",
    "duckdb_logs()",
    "duckdb_secrets()",
    "duckdb_settings()",
    "duckdb_temporary_files()",
    "duckdb_variables()",
    "enable_logging()",
    "force_checkpoint()",
    "glob('*')",
    "histogram('duckdb_databases', path)",
    "json_execute_serialized_sql(json_serialize_sql('FROM duckdb_databases'))",
    "loaded0.main.output",
    "loaded0.output",
    "main.duckdb_databases",
    "pandas_scan(1)",
    "parquet_metadata('x')",
    "pg_catalog.pg_settings",
    "pg_settings",
    "pragma_database_list",
    "pragma_database_size()",
    "query('COPY output TO ''x.db''')",
    "query_table('duckdb_databases')",
    "Read_Blob('x')",
    "READ_TEXT('x')",
    "read_csv('x')",
    "read_csv_auto('x')",
    "read_duckdb('x')",
    "read_json('x')",
    "read_parquet('x')",
    "seq_scan()",
    "sniff_csv('x')",
    "sqlite_master",
    "system.main.duckdb_settings()",
    "which_secret('x', 's3')",
    "'x.csv'",
    '"x.csv"',
    "no_such_function()",
    "no_such_table",
)
VALUES_OF_OTHERS = ("current_setting('temp_directory')", "getenv('HOME')", "json_serialize_plan('SELECT 1')", "write_log('x')")
PLACES = (
    "WITH x AS ({}) SELECT * FROM x",
    "WITH x AS MATERIALIZED ({}) SELECT 1",
    "WITH x AS (SELECT 1), y AS (WITH z AS ({}) SELECT * FROM z) FROM y",
    "WITH RECURSIVE x AS ({} UNION ALL SELECT 1) FROM x",
    "WITH RECURSIVE x AS (SELECT 1 UNION ALL {}) FROM x",
    "SELECT * FROM ({})",
    "FROM ({}) AS x JOIN output ON true",
    "SELECT ({})",
    "SELECT EXISTS ({})",
    "SELECT 1 WHERE 1 IN ({})",
    "SELECT ARRAY({})",
    "SELECT list_transform([1], lambda x: ({}))",
    "SELECT 1 ORDER BY ({})",
    "SELECT 1 LIMIT ({})",
    "SELECT sum(1) OVER (ORDER BY ({}))",
    "SELECT 1 UNION ALL ({})",
    "VALUES (({}))",
    "DESCRIBE {}",
    "SUMMARIZE {}",
    "EXPLAIN {}",
    "FROM unnest(({}))",
    "FROM range(({}))",
    "FROM repeat(({}), 2)",
    "PIVOT ({}) ON id IN (1) USING count(*)",
    "UNPIVOT ({}) ON id",
    "SELECT 1; {}",
    "{}",
)


def list_hostile() -> Iterator[str]:
    tables = [f"SELECT * FROM {table}" for table in TABLES_OF_OTHERS]
    for statement in (*OTHERS, *tables, *(f"SELECT {value}" for value in VALUES_OF_OTHERS)):
        yield from (place.format(statement) for place in PLACES)
        quoted = statement.replace("'", "''")
        yield f"FROM query('{quoted}')"
        yield f"FROM json_execute_serialized_sql(json_serialize_sql('{quoted}'))"
        yield f"SELECT json_serialize_plan('{quoted}')"
    yield "SELECT * FROM (WITH tables AS (SELECT 1) FROM tables), information_schema.schemata"
    for view in ("duckdb_databases", "pg_settings", "pragma_database_list"):
        yield f"WITH {view} AS (SELECT * FROM {view}) SELECT * FROM {view}"
        yield f"WITH x AS (FROM {view}), {view} AS (SELECT 1) FROM x"
        yield f"WITH {view} AS (SELECT 1) SELECT * FROM (SHOW {view})"
        yield f"SELECT * FROM (WITH {view} AS (SELECT 1) SELECT 1), {view}"
        yield f"SUMMARIZE {view}"
        yield f"SHOW {view}"
    yield "SHOW VARIABLES"


def find_mistakes() -> list[str]:
    """What is refused though it only reads, and what is not refused though it does something else. Nothing is run."""
    connection, mistakes = duckdb.connect(), list[str]()
    for statement in READS:
        try:
            check_statement(connection, statement, TABLES)
        except (Refused, duckdb.Error) as error:
            mistakes.append(f"{statement[:200]} is refused: {error}")
    for statement in list_hostile():
        try:
            check_statement(connection, statement, TABLES)
        except (Refused, duckdb.ParserException, duckdb.NotImplementedException):
            continue
        mistakes.append(f"{statement} is not refused")
    return mistakes


if __name__ == "__main__":
    sys.stdout.write("\n".join([duckdb.__version__, *find_mistakes()]))
