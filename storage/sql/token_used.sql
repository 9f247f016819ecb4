-- A token was used; those that come at once note it once.
UPDATE tokens SET last_used_at = clock_timestamp()
WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at <= clock_timestamp() - interval '1 minute')
