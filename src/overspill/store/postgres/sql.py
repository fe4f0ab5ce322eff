"""The tables and the queries. They are in a separate schema, away from the tables of other programs.

A *run* is one process that uses the store, with a lease that it renews. A *hold* is a session that a run has open. Without its
hold, a session cannot write. Time is always the server's, so the clocks of the machines do not matter.
"""

from __future__ import annotations

from overspill.handles import ENDING_CHARS

JOURNAL_PAGE_ROWS = 1_000
SCHEMA = "overspill"
VERSION = 1
MAX_PIECE_BYTES = 1 << 20
"""Outputs are rows of at most this size, so a range can be read without the bytes before it."""
FAMILY = "left(name, -1 - length(substring(name FROM '[^/]*$')))"
"""The part before the last slash of a name; empty without a slash."""

CREATE_INDEX = f"""
CREATE TABLE IF NOT EXISTS {SCHEMA}.recorded (
    session uuid NOT NULL REFERENCES {SCHEMA}.sessions ON DELETE CASCADE,
    id uuid NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX IF NOT EXISTS recorded_by_ending ON {SCHEMA}.recorded (right(id::text, {ENDING_CHARS}));
"""
"""Lines of journals, by the ends of the ids that names spell. The first databases have no such table."""
CREATE_TABLES = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.runs (
    run uuid PRIMARY KEY,
    until timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS {SCHEMA}.sessions (
    session uuid PRIMARY KEY,
    tenant text NOT NULL,
    name text NOT NULL,
    retention text NOT NULL,
    opening bytea NOT NULL,
    run uuid NOT NULL,
    used timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS sessions_by_name ON {SCHEMA}.sessions (tenant, name) WHERE name <> '';
CREATE INDEX IF NOT EXISTS sessions_by_family ON {SCHEMA}.sessions (tenant, {FAMILY}, session) WHERE name <> '';
CREATE INDEX IF NOT EXISTS sessions_by_tenant ON {SCHEMA}.sessions (tenant, session);
CREATE INDEX IF NOT EXISTS sessions_by_run ON {SCHEMA}.sessions (run) WHERE retention <> 'keep';
CREATE TABLE IF NOT EXISTS {SCHEMA}.holds (
    hold uuid PRIMARY KEY,
    session uuid NOT NULL REFERENCES {SCHEMA}.sessions ON DELETE CASCADE,
    run uuid NOT NULL REFERENCES {SCHEMA}.runs ON DELETE CASCADE,
    shared boolean NOT NULL
);
CREATE INDEX IF NOT EXISTS holds_by_session ON {SCHEMA}.holds (session);
CREATE INDEX IF NOT EXISTS holds_by_run ON {SCHEMA}.holds (run);
CREATE TABLE IF NOT EXISTS {SCHEMA}.outputs (
    session uuid NOT NULL REFERENCES {SCHEMA}.sessions ON DELETE CASCADE,
    id uuid NOT NULL,
    hold uuid NOT NULL,
    size bigint NOT NULL,
    complete boolean NOT NULL DEFAULT false,
    used timestamptz NOT NULL DEFAULT now(),
    removed timestamptz,
    PRIMARY KEY (session, id)
);
CREATE INDEX IF NOT EXISTS outputs_by_use ON {SCHEMA}.outputs (used) WHERE removed IS NULL;
CREATE INDEX IF NOT EXISTS outputs_removed ON {SCHEMA}.outputs (removed) WHERE removed IS NOT NULL;
CREATE INDEX IF NOT EXISTS outputs_unfinished ON {SCHEMA}.outputs (hold) WHERE NOT complete;
CREATE TABLE IF NOT EXISTS {SCHEMA}.pieces (
    session uuid NOT NULL,
    id uuid NOT NULL,
    start bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session, id, start),
    FOREIGN KEY (session, id) REFERENCES {SCHEMA}.outputs ON DELETE CASCADE
);
ALTER TABLE {SCHEMA}.pieces ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS {SCHEMA}.journal (
    session uuid NOT NULL REFERENCES {SCHEMA}.sessions ON DELETE CASCADE,
    n bigint GENERATED ALWAYS AS IDENTITY,
    hold uuid NOT NULL,
    nth bigint NOT NULL,
    lines bytea NOT NULL,
    PRIMARY KEY (session, n),
    UNIQUE (session, hold, nth)
);
{CREATE_INDEX}
CREATE TABLE IF NOT EXISTS {SCHEMA}.version (version int PRIMARY KEY);
INSERT INTO {SCHEMA}.version VALUES ({VERSION}) ON CONFLICT DO NOTHING;
"""
_INDEX = f"to_regclass('{SCHEMA}.recorded')"
FIND_VERSION = f"""
SELECT max(version), coalesce(has_table_privilege({_INDEX}, 'SELECT') AND has_table_privilege({_INDEX}, 'INSERT'), false)
FROM {SCHEMA}.version
"""

START = (
    f"INSERT INTO {SCHEMA}.runs (run, until) VALUES (%(run)s, now() + make_interval(secs => %(lease)s)) ON CONFLICT DO NOTHING"
)
RENEW = f"UPDATE {SCHEMA}.runs SET until = now() + make_interval(secs => %(lease)s) WHERE run = %(run)s RETURNING run"
END = f"DELETE FROM {SCHEMA}.runs WHERE run = %(run)s"
SWEEP = f"""
WITH dead AS (
    DELETE FROM {SCHEMA}.runs WHERE until < now() - make_interval(secs => %(remove_after)s)
        AND pg_postmaster_start_time() < now() - make_interval(secs => %(remove_after)s) RETURNING run
), removed AS (
    DELETE FROM {SCHEMA}.sessions WHERE retention <> 'keep' AND run IN (SELECT run FROM dead)
)
DELETE FROM {SCHEMA}.outputs WHERE removed < now() - make_interval(secs => %(readable)s)
"""

_IS_LIVE = f"""EXISTS (
    SELECT FROM {SCHEMA}.holds h JOIN {SCHEMA}.runs r USING (run) WHERE h.session = s.session
        AND (r.until > now() OR pg_postmaster_start_time() > now() - make_interval(secs => %(lease)s))
)"""
"""Leases cannot be renewed while the server is down, so those that ran out then stay valid for a while after it starts."""

LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s || E'\\n' || %(name)s, 0))"
CREATE = f"""
WITH made AS (
    INSERT INTO {SCHEMA}.sessions (session, tenant, name, retention, opening, run)
    VALUES (%(session)s, %(tenant)s, %(name)s, %(retention)s, %(opening)s, %(run)s) ON CONFLICT DO NOTHING RETURNING session
)
INSERT INTO {SCHEMA}.holds (hold, session, run, shared) SELECT %(hold)s::uuid, session, %(run)s::uuid, false FROM made
RETURNING session
"""
DROP_DEAD_HOLDS = f"""
DELETE FROM {SCHEMA}.holds h USING {SCHEMA}.runs r WHERE h.session = %(session)s AND r.run = h.run AND r.until <= now()
    AND pg_postmaster_start_time() <= now() - make_interval(secs => %(lease)s)
"""
TAKE = f"""
WITH used AS (UPDATE {SCHEMA}.sessions SET used = now() WHERE session = %(session)s RETURNING session)
INSERT INTO {SCHEMA}.holds (hold, session, run, shared) SELECT %(hold)s::uuid, session, %(run)s::uuid, false FROM used
RETURNING session
"""
RELEASE = f"""
WITH released AS (DELETE FROM {SCHEMA}.holds WHERE hold = %(hold)s RETURNING session)
UPDATE {SCHEMA}.sessions SET used = now() WHERE session IN (SELECT session FROM released)
"""
REMOVE_OWN = f"""
DELETE FROM {SCHEMA}.sessions WHERE session = %(session)s
    AND EXISTS (SELECT FROM {SCHEMA}.holds WHERE hold = %(hold)s)
"""
REMOVE_OF_RUN = f"DELETE FROM {SCHEMA}.sessions WHERE run = %(run)s AND retention <> 'keep'"
_EVERY_LABEL = f"SELECT s.session, {_IS_LIVE}, s.name, s.retention FROM {SCHEMA}.sessions s WHERE s.tenant = %(tenant)s"
LABEL = f"{_EVERY_LABEL} AND s.session = %(session)s"
FIND_NAME = f"{_EVERY_LABEL} AND s.name = %(name)s"
_LABELS = f"{_EVERY_LABEL} AND (%(after)s::uuid IS NULL OR s.session > %(after)s::uuid)"
_PAGE = "ORDER BY session LIMIT %(most)s"
LABELS = f"{_LABELS} {_PAGE}"
LABELS_OF_FAMILY = f"""
({_LABELS} AND s.name <> '' AND {FAMILY} = %(family)s {_PAGE})
UNION ALL ({_LABELS} AND s.name <> '' AND s.name = %(family)s {_PAGE})
{_PAGE}
"""
"""Two queries, because each can use an index."""
FIND_RECORDED = f"""
SELECT session, line FROM {SCHEMA}.recorded JOIN {SCHEMA}.sessions USING (session)
WHERE right(id::text, {ENDING_CHARS}) = %(ending)s AND tenant = %(tenant)s
"""
REMOVE_SESSION = f"""
DELETE FROM {SCHEMA}.sessions s WHERE s.tenant = %(tenant)s AND s.session = %(session)s AND NOT {_IS_LIVE} RETURNING s.session
"""
EMPTY = f"""
UPDATE {SCHEMA}.outputs SET removed = now() WHERE session = %(session)s AND complete AND removed IS NULL RETURNING id
"""
PURGE = f"DELETE FROM {SCHEMA}.outputs WHERE session = ANY(%(sessions)s::uuid[]) AND removed IS NOT NULL"

REMOVE_UNFINISHED = f"""
DELETE FROM {SCHEMA}.outputs o USING {SCHEMA}.sessions s WHERE s.session = o.session AND s.tenant = %(tenant)s
    AND NOT o.complete AND o.hold NOT IN (SELECT hold FROM {SCHEMA}.holds) AND NOT {_IS_LIVE}
"""
_IS_KEPT = "s.tenant = %(tenant)s AND s.retention = 'keep'"
KEPT_BYTES = f"""
SELECT extract(epoch FROM now())::float8, family, sum(size)::bigint FROM (
    SELECT {FAMILY} AS family, o.size FROM {SCHEMA}.outputs o JOIN {SCHEMA}.sessions s USING (session)
        WHERE {_IS_KEPT} AND o.removed IS NULL
    UNION ALL SELECT {FAMILY}, length(j.lines) FROM {SCHEMA}.journal j JOIN {SCHEMA}.sessions s USING (session)
        WHERE {_IS_KEPT}
    UNION ALL SELECT {FAMILY}, length(s.opening) FROM {SCHEMA}.sessions s WHERE {_IS_KEPT}
) AS kept GROUP BY family
"""
_SESSION_USED = f"""greatest(s.used, (
    SELECT max(o.used) FROM {SCHEMA}.outputs o WHERE o.session = s.session AND o.removed IS NULL
))"""
OLD_SESSIONS = f"""
SELECT s.session, NULL::uuid, extract(epoch FROM {_SESSION_USED})::float8,
    coalesce((SELECT sum(o.size) FROM {SCHEMA}.outputs o WHERE o.session = s.session AND o.removed IS NULL), 0)::bigint
    + coalesce((SELECT sum(length(j.lines)) FROM {SCHEMA}.journal j WHERE j.session = s.session), 0)::bigint + length(s.opening),
    {FAMILY}
FROM {SCHEMA}.sessions s
WHERE s.tenant = %(tenant)s AND s.retention = 'keep' AND s.used < now() - make_interval(secs => %(unused)s) AND NOT {_IS_LIVE}
    AND {_SESSION_USED} < now() - make_interval(secs => %(unused)s)
ORDER BY s.used LIMIT %(most)s
"""
OLD_OUTPUTS = f"""
SELECT o.session, o.id, extract(epoch FROM o.used)::float8, o.size, {FAMILY}
FROM {SCHEMA}.outputs o JOIN {SCHEMA}.sessions s USING (session)
WHERE s.tenant = %(tenant)s AND s.retention = 'keep' AND o.complete AND o.removed IS NULL
    AND o.used < now() - make_interval(secs => %(unused)s) AND {_IS_LIVE}
ORDER BY o.used LIMIT %(most)s
"""
EXPIRE_SESSION = f"""
DELETE FROM {SCHEMA}.sessions s WHERE s.session = %(session)s AND NOT {_IS_LIVE}
    AND {_SESSION_USED} < now() - make_interval(secs => %(unused)s) RETURNING s.session
"""
EXPIRE_OUTPUT = f"""
UPDATE {SCHEMA}.outputs SET removed = now() WHERE session = %(session)s AND id = %(id)s AND removed IS NULL
    AND used < now() - make_interval(secs => %(unused)s) RETURNING id
"""
STILL_STORED = f"SELECT session, id FROM {SCHEMA}.outputs WHERE session = ANY(%(sessions)s::uuid[]) AND removed IS NULL"

WRITE = f"""
WITH held AS (
    SELECT FROM {SCHEMA}.holds WHERE hold = %(hold)s FOR KEY SHARE
), output AS (
    INSERT INTO {SCHEMA}.outputs (session, id, hold, size, complete)
    SELECT %(session)s::uuid, %(id)s::uuid, %(hold)s::uuid, %(end)s, %(complete)s FROM held
    ON CONFLICT (session, id) DO UPDATE SET size = excluded.size, complete = excluded.complete, used = now()
        WHERE outputs.hold = excluded.hold AND outputs.size IN (%(start)s, excluded.size) AND outputs.removed IS NULL
            AND (NOT outputs.complete OR excluded.complete)
    RETURNING id
), piece AS (
    INSERT INTO {SCHEMA}.pieces (session, id, start, data)
    SELECT %(session)s::uuid, id, %(start)s, %(data)s::bytea FROM output WHERE %(end)s > %(start)s
    ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM held), EXISTS (SELECT FROM output)
"""
"""Creates an output, appends to it or completes it, in one round trip. Does nothing without the session's hold."""
DISCARD = f"DELETE FROM {SCHEMA}.outputs WHERE session = %(session)s AND id = %(id)s AND hold = %(hold)s AND NOT complete"
FIND = f"""
SELECT size, complete, removed IS NOT NULL FROM {SCHEMA}.outputs WHERE session = %(session)s AND id = %(id)s
"""
READ = f"""
SELECT substring(data FROM (greatest(%(start)s - start, 0) + 1)::int FOR (%(end)s - greatest(%(start)s, start))::int)
FROM {SCHEMA}.pieces
WHERE session = %(session)s AND id = %(id)s AND start > %(start)s - {MAX_PIECE_BYTES} AND start < %(end)s
    AND start + length(data) > %(start)s
ORDER BY start
"""

NOTE_READ = f"UPDATE {SCHEMA}.outputs SET used = now() WHERE session = %(session)s AND id = %(id)s AND removed IS NULL"
LAST_USED = f"""
SELECT extract(epoch FROM used)::float8 FROM {SCHEMA}.outputs
WHERE session = %(session)s AND id = %(id)s AND removed IS NULL
"""
APPEND_JOURNAL = f"""
WITH held AS (
    SELECT FROM {SCHEMA}.holds WHERE hold = %(hold)s FOR KEY SHARE
), line AS (
    INSERT INTO {SCHEMA}.journal (session, hold, nth, lines)
    SELECT %(session)s::uuid, %(hold)s::uuid, %(nth)s, %(lines)s::bytea FROM held ON CONFLICT (session, hold, nth) DO NOTHING
)
SELECT EXISTS (SELECT FROM held)
"""
APPEND_RECORDED = APPEND_JOURNAL.replace(
    "SELECT EXISTS",
    f""", recorded AS (
    INSERT INTO {SCHEMA}.recorded (session, id, line)
    SELECT %(session)s::uuid, each.id, each.line FROM held, unnest(%(ids)s::uuid[], %(recorded)s::bytea[]) AS each (id, line)
    ON CONFLICT DO NOTHING
)
SELECT EXISTS""",
)
READ_OPENING = f"SELECT opening FROM {SCHEMA}.sessions WHERE session = %(session)s"
READ_JOURNAL = f"""
SELECT n, lines FROM {SCHEMA}.journal WHERE session = %(session)s AND n > %(after)s ORDER BY n LIMIT {JOURNAL_PAGE_ROWS}
"""
LIST_OUTPUTS = f"""
SELECT id, size FROM {SCHEMA}.outputs
WHERE session = %(session)s AND removed IS NULL
    AND (hold = %(hold)s OR hold NOT IN (SELECT hold FROM {SCHEMA}.holds JOIN {SCHEMA}.runs USING (run) WHERE until > now()))
"""
REMOVE_OUTPUTS = f"DELETE FROM {SCHEMA}.outputs WHERE session = %(session)s AND id = ANY(%(ids)s::uuid[])"
