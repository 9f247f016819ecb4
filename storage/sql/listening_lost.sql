-- The file that a row names is not in its store any more: have it made again.
UPDATE listening_copies
SET path = NULL, media = NULL, peaks = NULL, tries = 0, wake_at = clock_timestamp()
WHERE record_id = %(record_id)s AND path = %(path)s
