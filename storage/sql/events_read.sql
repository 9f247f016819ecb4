-- The history of one record, the oldest first, after an event; one row without an event says that the record
-- is there.
SELECT e.id, e.at, e.kind, e.milestone, e.by, e.detail
FROM records AS r LEFT JOIN events AS e ON e.record_id = r.id AND e.id > %(after)s
WHERE r.id = %(id)s AND r.deleted_at IS NULL
  AND (%(owner_id)s::uuid IS NULL OR r.owner_id = %(owner_id)s)
ORDER BY e.id
