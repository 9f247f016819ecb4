-- Whoever held the upload before writes nothing to it any more, not even what was sent before this.
UPDATE uploads
SET holder = CASE WHEN finished_at IS NULL THEN %(holder)s ELSE holder END,
    expires_at = clock_timestamp() + make_interval(secs => %(kept_seconds)s)
WHERE id = %(id)s AND account_id = %(account_id)s AND expires_at > clock_timestamp()
RETURNING id, store_id, expires_at, bytes, received, metadata, options, finished_at
