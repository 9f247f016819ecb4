-- End a making that made nothing: to be begun again after a delay, counted or not, or given up for good.
UPDATE listening_copies
SET token = NULL, failed_because = %(failed_because)s,
    tries = tries - CASE WHEN %(counts)s THEN 0 ELSE 1 END,
    wake_at = clock_timestamp() + make_interval(secs => %(delay)s)
WHERE record_id = %(record_id)s AND token = %(token)s
RETURNING record_id
