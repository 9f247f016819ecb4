-- What has come due joins those that wait for a claimer, so that a claim need not sort it again and again.
-- A lapsed lease stays its holder's until somebody claims anew: token and lease are left alone.
WITH due AS MATERIALIZED (
    SELECT id
    FROM records
    WHERE wake_at <= (SELECT clock_timestamp())
        AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
    ORDER BY wake_at
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
)
UPDATE records SET wake_at = NULL FROM due WHERE records.id = due.id
