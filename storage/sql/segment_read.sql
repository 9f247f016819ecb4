-- One segment, as recognised and as corrected.
SELECT s.slice, s.number, s.start_seconds, s.end_seconds, s.text, s.words, s.side, s.language, s.gap,
    s.edition, s.corrected
FROM owned_segments AS s JOIN records AS r ON r.id = s.record_id
WHERE r.id = %(id)s AND r.owner_id = %(owner_id)s AND r.deleted_at IS NULL
    AND s.slice = %(slice)s AND s.number = %(number)s
