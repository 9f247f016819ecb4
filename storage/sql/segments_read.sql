-- The segments of one record as recognised so far, in the order of the audio.
SELECT s.slice, s.number, s.start_seconds, s.end_seconds, s.text, s.words, s.side, s.language, s.gap
FROM segments AS s JOIN records AS r ON r.id = s.record_id
WHERE r.id = %(id)s AND r.deleted_at IS NULL
  AND (%(owner_id)s::uuid IS NULL OR r.owner_id = %(owner_id)s)
ORDER BY s.slice, s.number
