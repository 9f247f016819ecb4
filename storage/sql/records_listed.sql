-- Records, the newest first, from a place in that order on.
SELECT
    r.id, r.owner_id, a.name AS owner, r.created_at, r.milestone, r.stop_code, r.failures,
    r.title, r.filename, coalesce(r.decoded_seconds, r.declared_seconds) AS audio_seconds, r.recognised_seconds
FROM records AS r JOIN accounts AS a ON a.id = r.owner_id
WHERE r.deleted_at IS NULL
  AND (%(owner_id)s::uuid IS NULL OR r.owner_id = %(owner_id)s)
  AND (%(milestone)s::text IS NULL OR r.milestone = %(milestone)s)
  AND (%(stopped)s::boolean IS NULL OR (r.stop_code IS NOT NULL) = %(stopped)s)
  AND (%(before_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(before_at)s, %(before_id)s::uuid))
ORDER BY r.created_at DESC, r.id DESC
LIMIT %(limit)s
