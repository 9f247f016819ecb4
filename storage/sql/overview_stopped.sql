-- The records that were stopped last, of one reason or of all, with the full reason. None of the owner's words.
SELECT r.id, a.name AS owner, r.milestone, r.stop_code AS code, r.stop_reason AS reason, r.stopped_at, r.failures
FROM records AS r JOIN accounts AS a ON a.id = r.owner_id
WHERE r.stop_code IS NOT NULL AND r.deleted_at IS NULL AND (%(code)s::text IS NULL OR r.stop_code = %(code)s)
ORDER BY r.stopped_at DESC, r.id
LIMIT %(limit)s
