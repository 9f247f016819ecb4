-- All that the poll shows of these records, each to its owner (or, with no owner named, to the service owner),
-- with the text of those of which it is asked for.
-- The place in the queue is counted to a bound: past it nobody needs the exact number.
SELECT
    r.id, r.owner_id, r.milestone, r.milestone_since, r.created_at, r.failures, r.edition, r.corrections,
    r.stop_code, r.stop_reason, r.stopped_at, r.stopped_by,
    r.title, r.description, r.topics, r.left_name, r.right_name, r.filename, r.asked_language, r.found_language, r.translate,
    r.declared_seconds, r.decoded_seconds, r.audio_warnings, r.recogniser, r.recognised_seconds, r.store_id, r.audio_path,
    CASE WHEN r.milestone = 'done' AND r.id = ANY(%(with_text)s) THEN CASE
        WHEN r.corrections = 0 THEN r.recognised_text
        ELSE coalesce((
            SELECT string_agg(own.said, ' ' ORDER BY own.slice, own.number)
            FROM owned_segments AS own WHERE own.record_id = r.id AND own.said <> ''
        ), '')
    END END AS text,
    r.milestone = 'done' AND r.recognised_text = '' AS is_silent,
    g.gaps, g.gap_seconds,
    r.milestone_seconds,
    CASE WHEN r.claimed_at IS NOT NULL
    THEN greatest(extract(epoch FROM clock_timestamp() - r.claimed_at), 0)::double precision END AS held_seconds,
    greatest(extract(epoch FROM r.wake_at - clock_timestamp()), 0)::double precision AS wakes_in,
    CASE WHEN r.lane IS NOT NULL AND r.stop_code IS NULL
              AND (r.wake_at IS NULL OR r.wake_at <= clock_timestamp())
    THEN 1 + (
        SELECT count(*) FROM (
            SELECT FROM records AS ahead
            WHERE ahead.lane = r.lane AND ahead.store_id = r.store_id AND ahead.wake_at IS NULL
              AND ahead.stop_code IS NULL AND ahead.deleted_at IS NULL AND ahead.milestone <> 'done'
              AND (ahead.created_at, ahead.id) < (r.created_at, r.id)
            LIMIT %(most_ahead)s
        ) AS counted
    ) END AS queue_position
FROM records AS r
CROSS JOIN LATERAL (
    SELECT count(*)::integer AS gaps, coalesce(sum(s.end_seconds - s.start_seconds), 0)::double precision AS gap_seconds
    FROM owned_segments AS s WHERE s.record_id = r.id AND s.gap IS NOT NULL AND s.corrected IS NULL
) AS g
WHERE r.id = ANY(%(ids)s) AND r.deleted_at IS NULL
  AND (%(owner_id)s::uuid IS NULL OR r.owner_id = %(owner_id)s)
