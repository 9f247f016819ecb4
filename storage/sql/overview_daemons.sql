-- The daemons that have given a sign of life lately, those that live first.
SELECT run, host, pid, started_at, beat_at, workers, lanes, silent_seconds, is_alive
FROM daemons_seen
WHERE is_alive OR silent_seconds < 86400
ORDER BY is_alive DESC, started_at DESC, run
LIMIT 100
