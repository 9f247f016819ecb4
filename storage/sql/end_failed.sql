-- The attempt failed or ran out of its time: the count stays as the claim raised it, and a delay follows.
WITH ended AS (
    UPDATE records
    SET milestone_seconds = milestone_seconds + greatest(extract(epoch FROM clock_timestamp() - claimed_at), 0),
        wake_at = CASE WHEN %(delay)s > 0 THEN clock_timestamp() + make_interval(secs => %(delay)s) END,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    WHERE id = %(id)s AND claim_token = %(token)s
    RETURNING id, milestone, wake_at, lane, created_at
), noted AS (
    INSERT INTO events (record_id, kind, milestone, token, settles, by, detail)
    SELECT id, %(kind)s, milestone, %(token)s, true, %(by)s, %(detail)s FROM ended
)
SELECT NULL::text AS stop_code, CASE WHEN wake_at IS NULL THEN lane END AS ready_in, created_at
FROM ended
