-- One record as the claim looks at it: each condition of claim.sql that is the record's own, evaluated by itself
-- as it stands there. Deleted and done records are shown too. The place in the queue is counted to a bound.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), asked AS (
    SELECT r.*, clock.now,
        r.stop_code IS NULL AS is_not_stopped,
        r.deleted_at IS NULL AS is_not_deleted,
        r.milestone <> 'done' AS is_not_done,
        (r.wake_at IS NULL OR r.wake_at <= clock.now) AS is_due,
        (r.lease_until IS NULL OR r.lease_until <= clock.now) AS is_not_held
    FROM clock, records AS r
    WHERE r.id = %(id)s
)
SELECT a.now, a.id, accounts.name AS owner, a.filename, a.created_at, a.milestone, a.milestone_since,
    a.milestone_seconds, a.lane, a.store_id, a.failures, a.wake_at, a.claimed_by, a.claimed_at, a.lease_seconds,
    a.lease_until, a.stop_code, a.stop_reason, a.stopped_at, a.stopped_by, a.deleted_at,
    a.is_not_stopped, a.is_not_deleted, a.is_not_done, a.is_due, a.is_not_held,
    NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean AS takes_writes,
    CASE WHEN a.is_not_stopped AND a.is_not_deleted AND a.is_not_done AND a.is_due THEN (
        SELECT greatest(
            max(events.at) + make_interval(secs => coalesce(max((events.detail ->> 'delay')::float8), 0)),
            a.wake_at, a.lease_until
        )
        FROM events
        WHERE events.id = (SELECT max(newest.id) FROM events AS newest WHERE newest.record_id = a.id)
    ) END AS ready_since,
    CASE WHEN a.is_not_stopped AND a.is_not_deleted AND a.is_not_done AND a.is_due THEN (
        SELECT count(*) FROM (
            SELECT FROM records AS ahead
            WHERE ahead.lane = a.lane AND ahead.store_id = a.store_id AND ahead.wake_at IS NULL
                AND ahead.stop_code IS NULL AND ahead.deleted_at IS NULL AND ahead.milestone <> 'done'
                AND (ahead.created_at, ahead.id) < (a.created_at, a.id)
            LIMIT %(most_ahead)s
        ) AS counted
    ) END AS ahead
FROM asked AS a
JOIN accounts ON accounts.id = a.owner_id
