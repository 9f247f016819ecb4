-- How the records that are to be worked on are spread over lanes and milestones, and since when the oldest is there.
-- Reads what the claim's own indexes hold, and no more of it than a bound: it is asked again and again.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), unfinished AS (
    (
        SELECT milestone, lane, milestone_since, 'waiting' AS state
        FROM records
        WHERE wake_at IS NULL AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
        LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT milestone, lane, milestone_since,
            CASE
                WHEN wake_at <= (SELECT now FROM clock) THEN 'waiting'
                WHEN claim_token IS NOT NULL THEN 'held'
                ELSE 'delayed'
            END AS state
        FROM records
        WHERE wake_at IS NOT NULL AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
        LIMIT %(limit)s
    )
)
SELECT milestone, lane, state, count(*) AS records,
    greatest(extract(epoch FROM (SELECT now FROM clock) - min(milestone_since)), 0)::float8 AS oldest_seconds
FROM unfinished
GROUP BY milestone, lane, state
