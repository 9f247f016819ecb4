-- A person stops a record, also under a running stage: fenced in the same statement.
WITH stopped AS (
    UPDATE records
    SET stop_code = 'stopped_by_owner', stop_reason = %(reason)s, stopped_at = clock_timestamp(),
        stopped_by = %(by)s, wake_at = NULL,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    WHERE id = %(id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
        AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
    RETURNING id, milestone, stop_reason
), noted AS (
    INSERT INTO events (record_id, kind, milestone, by, detail)
    SELECT id, 'stopped', milestone, %(by)s,
        jsonb_build_object('code', 'stopped_by_owner', 'reason', stop_reason)
    FROM stopped
)
SELECT id FROM stopped
