-- A person lifts the stop flag: requires it, so that a second lift does not free somebody's healthy claim.
WITH lifted AS (
    UPDATE records
    SET stop_code = NULL, stop_reason = NULL, stopped_at = NULL, stopped_by = NULL,
        failures = 0, milestone_seconds = 0, milestone_since = clock_timestamp(), wake_at = NULL
    WHERE id = %(id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
        AND stop_code IS NOT NULL AND deleted_at IS NULL
    RETURNING id, milestone, lane, created_at
), noted AS (
    INSERT INTO events (record_id, kind, milestone, by) SELECT id, 'lifted', milestone, %(by)s FROM lifted
)
SELECT id, CASE
    WHEN lane IS NOT NULL THEN pg_notify('rubezh_ready', lane || ' ' || extract(epoch FROM created_at))
END FROM lifted
