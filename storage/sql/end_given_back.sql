-- The attempt ends uncounted and without a verdict, the record ready at once. Guarded by the token alone, as
-- a claim whose answer was lost knows nothing else.
WITH ended AS (
    UPDATE records
    SET failures = failures - 1,
        milestone_seconds = milestone_seconds + greatest(extract(epoch FROM clock_timestamp() - claimed_at), 0),
        wake_at = NULL,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    WHERE claim_token = %(token)s
    RETURNING id, milestone, lane, created_at
), noted AS (
    INSERT INTO events (record_id, kind, milestone, token, settles, by, detail)
    SELECT id, 'given_back', milestone, %(token)s, true, %(by)s, %(detail)s FROM ended
)
SELECT NULL::text AS stop_code, lane AS ready_in, created_at,
    pg_notify('rubezh_ready', lane || ' ' || extract(epoch FROM created_at))
FROM ended
