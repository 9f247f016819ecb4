-- What the service owner sees at a glance: who is alive by one rule, and the stopped records without reading all others.

-- Every daemon that has given a sign of life. One counts as alive until it has missed three signs.
CREATE VIEW daemons_seen AS
SELECT run, host, pid, started_at, beat_at, workers, failures_limit, stores, milestones, lanes,
    greatest(extract(epoch FROM clock_timestamp() - beat_at), 0)::float8 AS silent_seconds,
    beat_at + make_interval(secs => 3 * beat_seconds) > clock_timestamp() AS is_alive
FROM daemons;

CREATE INDEX records_stopped ON records (stopped_at DESC) WHERE stop_code IS NOT NULL AND deleted_at IS NULL;
