-- What has come due joins those that wait for a claimer, so that a claim need not sort it again and again.
-- A lapsed lease stays its holder's until somebody claims anew: token and lease are left alone. Tells how many
-- were woken, until which moment, and the first of each lane.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), due AS MATERIALIZED (
    SELECT id
    FROM records
    WHERE wake_at <= (SELECT now FROM clock)
        AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
    ORDER BY wake_at
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE records SET wake_at = NULL FROM due WHERE records.id = due.id
    RETURNING records.lane, records.created_at
)
SELECT clock.now, woken.lane, count(woken.lane), min(woken.created_at)
FROM clock LEFT JOIN woken ON true
GROUP BY clock.now, woken.lane
