-- Publish what was made, once: whoever lost the answer to it says the same again.
UPDATE listening_copies
SET path = %(path)s, media = %(media)s, peaks = %(peaks)s, token = NULL
WHERE record_id = %(record_id)s AND (token = %(token)s OR path = %(path)s)
RETURNING record_id
