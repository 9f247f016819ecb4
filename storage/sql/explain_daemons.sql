-- Every daemon that has given a sign of life, and the conditions of claim.sql that depend on who claims, each
-- evaluated by itself for this record.
SELECT d.run, d.host, d.pid, d.started_at, d.beat_at, d.workers, d.failures_limit, d.lanes,
    d.silent_seconds, d.is_alive,
    r.store_id = ANY (d.stores) AS has_store,
    r.milestone = ANY (d.milestones) AS has_stage,
    coalesce((
        SELECT lane.closed_because IS NULL AND lane.busy < lane.slots
        FROM jsonb_to_recordset(d.lanes) AS lane (name text, slots integer, busy integer, closed_because text)
        WHERE lane.name = r.lane
    ), false) AS has_free_lane,
    r.failures >= d.failures_limit AND r.failures > 0 AS needs_no_lane
FROM daemons_seen AS d
CROSS JOIN records AS r
WHERE r.id = %(id)s
ORDER BY d.beat_at DESC, d.run
LIMIT 100
