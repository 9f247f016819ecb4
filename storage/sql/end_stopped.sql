-- The holder stops its record: hopeless, exhausted or overdue. Flag, token and lease change together.
WITH ended AS (
    UPDATE records
    SET stop_code = %(code)s, stop_reason = %(reason)s, stopped_at = clock_timestamp(), stopped_by = %(by)s,
        milestone_seconds = milestone_seconds + greatest(extract(epoch FROM clock_timestamp() - claimed_at), 0),
        wake_at = NULL,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    WHERE id = %(id)s AND claim_token = %(token)s
    RETURNING id, milestone, stop_code, stop_reason
), noted AS (
    INSERT INTO events (record_id, kind, milestone, token, settles, by, detail)
    SELECT id, 'stopped', milestone, %(token)s, true, %(by)s,
        %(detail)s::jsonb || jsonb_build_object('code', stop_code, 'reason', stop_reason)
    FROM ended
)
SELECT stop_code, NULL::text AS ready_in, NULL::timestamptz AS created_at FROM ended
