-- No failure and no next milestone yet. The milestone guard is judged here: a record whose work and waiting
-- at this milestone pass the limit is stopped by the same statement.
WITH spent AS (
    SELECT milestone_seconds + greatest(extract(epoch FROM clock_timestamp() - claimed_at), 0) + %(delay)s AS seconds
    FROM records
    WHERE id = %(id)s AND claim_token = %(token)s
), ended AS (
    UPDATE records
    SET milestone_seconds = spent.seconds,
        failures = 0,
        wake_at = CASE
            WHEN spent.seconds > %(limit)s OR %(delay)s <= 0 THEN NULL
            ELSE clock_timestamp() + make_interval(secs => %(delay)s)
        END,
        stop_code = CASE WHEN spent.seconds > %(limit)s THEN 'overdue' END,
        stop_reason = CASE WHEN spent.seconds > %(limit)s THEN %(overdue_reason)s END,
        stopped_at = CASE WHEN spent.seconds > %(limit)s THEN clock_timestamp() END,
        stopped_by = CASE WHEN spent.seconds > %(limit)s THEN %(by)s END,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    FROM spent
    WHERE id = %(id)s AND claim_token = %(token)s
    RETURNING id, milestone, stop_code, stop_reason, wake_at, lane, created_at
), noted AS (
    INSERT INTO events (record_id, kind, milestone, token, settles, by, detail)
    SELECT id, CASE WHEN stop_code IS NULL THEN 'deferred' ELSE 'stopped' END, milestone, %(token)s, true,
        %(by)s,
        %(detail)s::jsonb || CASE
            WHEN stop_code IS NULL THEN '{}'
            ELSE jsonb_build_object('code', stop_code, 'reason', stop_reason, 'failures_reset', true)
        END
    FROM ended
)
SELECT stop_code, CASE WHEN stop_code IS NULL AND wake_at IS NULL THEN lane END AS ready_in, created_at
FROM ended
