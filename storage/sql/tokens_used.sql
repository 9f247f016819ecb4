-- These tokens were used; those that come at once note it once.
UPDATE tokens SET last_used_at = clock_timestamp()
WHERE id = ANY(%(ids)s) AND (last_used_at IS NULL OR last_used_at <= clock_timestamp() - interval '1 minute')
