-- Publish what was made.
UPDATE listening_copies
SET path = %(path)s, media = %(media)s, peaks = %(peaks)s, token = NULL
WHERE record_id = %(record_id)s AND token = %(token)s
RETURNING record_id
