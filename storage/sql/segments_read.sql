-- The segments of one record so far, in the order of the audio, a part of them: as recognised and as corrected.
SELECT s.slice, s.number, s.start_seconds, s.end_seconds, s.text, s.words, s.side, s.language, s.gap,
    s.edition, s.corrected
FROM (
    SELECT each.record_id, each.slice, each.number, each.start_seconds
    FROM segments AS each JOIN records AS r ON r.id = each.record_id
    WHERE r.id = %(id)s AND r.deleted_at IS NULL
      AND (%(owner_id)s::uuid IS NULL OR r.owner_id = %(owner_id)s)
    ORDER BY each.start_seconds, each.slice, each.number
    OFFSET %(first)s LIMIT %(limit)s
) AS part
JOIN owned_segments AS s
    ON s.record_id = part.record_id AND s.slice = part.slice AND s.number = part.number
ORDER BY part.start_seconds, part.slice, part.number
