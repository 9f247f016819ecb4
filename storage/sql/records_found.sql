-- The same page of those records whose words hold what is searched for. The page is found first, by the words' own
-- index: what is shown of each record is looked up for that page alone.
WITH page AS MATERIALIZED (
    SELECT r.id
    FROM record_words AS w JOIN records AS r ON r.id = w.record_id
    WHERE w.words @@ websearch_to_tsquery('pg_catalog.russian', small_letters(%(search)s))
      AND r.owner_id = %(owner_id)s AND r.deleted_at IS NULL
      AND (%(milestone)s::text IS NULL OR r.milestone = %(milestone)s)
      AND (%(stopped)s::boolean IS NULL OR (r.stop_code IS NOT NULL) = %(stopped)s)
      AND (%(before_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(before_at)s, %(before_id)s::uuid))
    ORDER BY r.created_at DESC, r.id DESC
    LIMIT %(limit)s
)
SELECT
    r.id, r.owner_id, r.milestone, r.milestone_since, r.created_at, r.failures, r.edition, r.corrections,
    r.stop_code, r.stop_reason, r.stopped_at, r.stopped_by,
    r.title, r.description, r.topics, r.left_name, r.right_name, r.filename, r.asked_language, r.found_language, r.translate,
    r.declared_seconds, r.decoded_seconds, r.audio_warnings, r.recogniser, r.recognised_seconds, r.store_id, r.audio_path,
    NULL::text AS text, r.milestone = 'done' AND r.recognised_text = '' AS is_silent, g.gaps, g.gap_seconds, r.milestone_seconds,
    CASE WHEN r.claimed_at IS NOT NULL
    THEN greatest(extract(epoch FROM clock_timestamp() - r.claimed_at), 0)::double precision END AS held_seconds,
    greatest(extract(epoch FROM r.wake_at - clock_timestamp()), 0)::double precision AS wakes_in,
    NULL::bigint AS queue_position
FROM page JOIN records AS r ON r.id = page.id
CROSS JOIN LATERAL (
    SELECT count(*)::integer AS gaps, coalesce(sum(s.end_seconds - s.start_seconds), 0)::double precision AS gap_seconds
    FROM owned_segments AS s WHERE s.record_id = r.id AND s.gap IS NOT NULL AND s.corrected IS NULL
) AS g
ORDER BY r.created_at DESC, r.id DESC
