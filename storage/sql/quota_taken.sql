-- Take one request of a quota, or be told the seconds until there is one: in any stretch of time at most so many
-- are taken, whoever asks. The row is locked before the clock is read.
INSERT INTO quotas AS q (name, taken)
VALUES (%(name)s, CASE WHEN %(requests)s > 0 THEN ARRAY[clock_timestamp()] ELSE '{}' END)
ON CONFLICT (name) DO UPDATE
SET (taken, wait_seconds) = (
    SELECT
        CASE
            WHEN wait.seconds > 0 THEN q.taken
            WHEN %(requests)s = 0 THEN '{}'
            ELSE (q.taken || clock.now)[greatest(cardinality(q.taken) + 2 - %(requests)s, 1):]
        END,
        wait.seconds
    FROM (SELECT clock_timestamp() AS now) AS clock
    CROSS JOIN LATERAL (
        SELECT greatest(
            0,
            extract(epoch FROM q.paused_until - clock.now),
            CASE WHEN %(requests)s > 0 AND cardinality(q.taken) >= %(requests)s THEN
                extract(epoch FROM q.taken[cardinality(q.taken) + 1 - %(requests)s] - clock.now) + %(seconds)s
            END
        )::double precision AS seconds
    ) AS wait
)
RETURNING wait_seconds
