"""What the store itself asks the database: which sessions there are, who holds them, and what the limits remove."""

from __future__ import annotations

from overspill.handles import ENDING_CHARS
from overspill.store.postgres.schema import FAMILY, SCHEMA

_IS_LIVE = f"""EXISTS (
    SELECT FROM {SCHEMA}.holds h JOIN {SCHEMA}.runs r USING (run) WHERE h.session = s.session
        AND (r.until > now() OR pg_postmaster_start_time() > now() - make_interval(secs => %(lease)s))
)"""
"""Nobody could renew a lease while the server was down, so those that ran out then count for a while after it has started."""

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
"""In two parts, because each has an index."""
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
SELECT s.session, extract(epoch FROM {_SESSION_USED})::float8,
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
