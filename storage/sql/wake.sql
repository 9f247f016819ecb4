-- What has come due joins those that wait for a claimer, so that a claim need not sort it again and again.
-- A lapsed lease stays its holder's until somebody claims anew: token and lease are left alone. Tells how many
-- were woken, until which moment, and the first of each lane; what was due before `wake_from` was woken before.
-- With it goes the sign of life of the daemon that asks, if it gives one, and whoever has given none for a day
-- is forgotten.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), due AS MATERIALIZED (
    SELECT id
    FROM records
    WHERE wake_at >= %(wake_from)s AND wake_at <= (SELECT now FROM clock)
        AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
    ORDER BY wake_at
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE records SET wake_at = NULL FROM due WHERE records.id = due.id
    RETURNING records.lane, records.created_at
), lives AS (
    INSERT INTO daemons (
        run, host, pid, beat_at, beat_seconds, workers, failures_limit, stores, milestones, lanes
    )
    SELECT sign.run, sign.host, sign.pid, clock.now, sign.beat_seconds, sign.workers, sign.failures_limit,
        sign.stores, sign.milestones, sign.lanes
    FROM clock, jsonb_to_record(%(sign)s::jsonb) AS sign (
        run text, host text, pid integer, beat_seconds double precision, workers integer,
        failures_limit integer, stores uuid[], milestones text[], lanes jsonb
    )
    WHERE sign.run IS NOT NULL
    ON CONFLICT (run) DO UPDATE
    SET beat_at = excluded.beat_at, workers = excluded.workers, lanes = excluded.lanes
), forgotten AS (
    DELETE FROM daemons
    WHERE %(sign)s::jsonb IS NOT NULL AND run <> %(sign)s::jsonb ->> 'run'
        AND beat_at < (SELECT now FROM clock) - interval '1 day'
)
SELECT clock.now, woken.lane, count(woken.lane), min(woken.created_at)
FROM clock LEFT JOIN woken ON true
GROUP BY clock.now, woken.lane
