-- So many bytes of an upload are flushed, never all of them; its lease begins anew.
UPDATE uploads
SET received = %(received)s, expires_at = clock_timestamp() + make_interval(secs => %(kept_seconds)s)
WHERE id = %(id)s AND holder = %(holder)s AND finished_at IS NULL
RETURNING expires_at
