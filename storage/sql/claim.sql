-- Claim the first ready record: choosing it and marking it held are this one statement.
-- The nearest candidates are read from their indexes without a lock; then the first of them that nobody else
-- has locked is locked, alone, with every condition checked again on its newest version. Each lane is read from
-- its floor on: a hint that spares the walk over what an old snapshot keeps in the index. Returns id and token
-- only: whatever else a stage needs is an ordinary read of its own. Every few seconds a claim carries its daemon's
-- sign of life, so that an idle one need not ask twice.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), nearest AS MATERIALIZED (
    SELECT head.id
    FROM unnest(%(lanes)s::text[], %(floors)s::timestamptz[]) AS free (lane, floor)
    CROSS JOIN unnest(%(stores)s::uuid[]) AS mounted (store_id)
    CROSS JOIN LATERAL (
        SELECT awake.id
        FROM records AS awake
        WHERE awake.lane = free.lane AND awake.store_id = mounted.store_id
            AND awake.wake_at IS NULL AND awake.created_at >= free.floor
            AND awake.stop_code IS NULL AND awake.deleted_at IS NULL AND awake.milestone <> 'done'
        ORDER BY awake.created_at, awake.id
        LIMIT 32
    ) AS head
    UNION
    (
        SELECT due.id
        FROM records AS due
        WHERE due.wake_at >= %(wake_from)s AND due.wake_at <= (SELECT now FROM clock)
            AND due.lane = ANY (%(lanes)s::text[]) AND due.store_id = ANY (%(stores)s::uuid[])
            AND due.stop_code IS NULL AND due.deleted_at IS NULL AND due.milestone <> 'done'
        ORDER BY due.created_at, due.id
        LIMIT 32
    )
    UNION
    (
        -- An exhausted record needs no slot: it is only to be stopped.
        SELECT exhausted.id
        FROM records AS exhausted
        WHERE exhausted.failures >= %(failures_limit)s AND exhausted.failures > 0
            AND (exhausted.wake_at IS NULL OR exhausted.wake_at <= (SELECT now FROM clock))
            AND exhausted.store_id = ANY (%(stores)s::uuid[])
            AND exhausted.stop_code IS NULL AND exhausted.deleted_at IS NULL AND exhausted.milestone <> 'done'
        ORDER BY exhausted.created_at, exhausted.id
        LIMIT 32
    )
), chosen AS MATERIALIZED (
    SELECT ready.id, lease.seconds
    FROM nearest
    JOIN records AS ready ON ready.id = nearest.id
    JOIN unnest(%(milestones)s::text[], %(leases)s::float8[]) AS lease (milestone, seconds)
        ON lease.milestone = ready.milestone
    WHERE (ready.wake_at IS NULL OR ready.wake_at <= (SELECT now FROM clock))
        AND ready.stop_code IS NULL AND ready.deleted_at IS NULL AND ready.milestone <> 'done'
        AND ready.store_id = ANY (%(stores)s::uuid[])
        AND (ready.lane = ANY (%(lanes)s::text[]) OR ready.failures >= %(failures_limit)s)
    ORDER BY ready.created_at, ready.id
    LIMIT 1
    FOR UPDATE OF ready SKIP LOCKED
), claimed AS (
    UPDATE records AS held
    SET failures = held.failures + 1,
        claim_token = %(token)s,
        claimed_by = %(claimed_by)s,
        claimed_at = clock.now,
        lease_seconds = chosen.seconds,
        lease_until = clock.now + make_interval(secs => chosen.seconds),
        wake_at = clock.now + make_interval(secs => chosen.seconds)
    FROM chosen, clock
    WHERE held.id = chosen.id
    RETURNING held.id, held.milestone, held.claim_token, held.claimed_by, held.failures, held.lease_seconds
), noted AS (
    INSERT INTO events (record_id, kind, milestone, token, by, detail)
    SELECT id, 'claimed', milestone, claim_token, claimed_by,
        jsonb_build_object('failures', failures, 'lease_seconds', lease_seconds)
    FROM claimed
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
)
SELECT id, claim_token FROM claimed
