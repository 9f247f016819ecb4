-- Take the next making that is due: of a decoded record of these stores. It is counted when it is begun, so that
-- one which takes the process down is counted, too.
WITH due AS MATERIALIZED (
    SELECT wanted.record_id, records.source_path, records.audio_path, records.track, records.decoded_seconds,
        records.audio_warnings
    FROM listening_copies AS wanted JOIN records ON records.id = wanted.record_id
    WHERE wanted.path IS NULL AND wanted.failed_because IS NULL AND wanted.wake_at <= clock_timestamp()
        AND records.store_id = %(store_id)s AND records.deleted_at IS NULL AND records.audio_path IS NOT NULL
    ORDER BY wanted.wake_at
    LIMIT 1
    FOR UPDATE OF wanted SKIP LOCKED
)
UPDATE listening_copies AS taken
SET token = %(token)s, tries = taken.tries + 1,
    wake_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
FROM due
WHERE taken.record_id = due.record_id
RETURNING taken.record_id, taken.token, taken.tries, due.source_path, due.audio_path, due.track,
    due.decoded_seconds, due.audio_warnings
