"""The tables, and how they come to exist. All are in a schema of their own, so that they meet no other program's tables.

A *run* is one process that uses the store, with a lease that it renews. A *hold* is a session that a run has open. Without its
hold, a session cannot write. Time is always the server's, so the clocks of the machines do not matter.
"""

from __future__ import annotations

from overspill.handles import ENDING_CHARS

SCHEMA = "overspill"
VERSION = 1
MAX_PIECE_BYTES = 1 << 20
"""Outputs are rows of at most this size, so that a range is read without reading what comes before it."""
FAMILY = "left(name, -1 - length(substring(name FROM '[^/]*$')))"
"""What comes before the last slash of a name; without a slash, nothing."""

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
CREATE = f"""
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
