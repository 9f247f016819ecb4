-- Hold a making on; no row: it is another's by now, or its record is gone.
UPDATE listening_copies AS held
SET wake_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
FROM records
WHERE held.record_id = %(record_id)s AND held.token = %(token)s
    AND records.id = held.record_id AND records.deleted_at IS NULL
RETURNING held.record_id
