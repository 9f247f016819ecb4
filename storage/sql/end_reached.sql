-- The stage brought the record to its next milestone: no failures, a fresh guard, ready at once.
WITH ended AS (
    UPDATE records
    SET milestone = %(milestone)s,
        milestone_since = clock_timestamp(),
        milestone_seconds = 0,
        lane = %(lane)s,
        failures = 0,
        wake_at = NULL,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    WHERE id = %(id)s AND claim_token = %(token)s
    RETURNING id, milestone, lane, created_at
), noted AS (
    INSERT INTO events (record_id, kind, milestone, token, settles, by, detail)
    SELECT id, 'reached', milestone, %(token)s, true, %(by)s, %(detail)s FROM ended
)
SELECT NULL::text AS stop_code, lane AS ready_in, created_at,
    CASE WHEN lane IS NOT NULL THEN pg_notify('rubezh_ready', lane || ' ' || extract(epoch FROM created_at)) END
FROM ended
