-- Sessions in use end later.
UPDATE sessions SET until = clock_timestamp() + make_interval(secs => %(idle_seconds)s)
WHERE secret_sha256 = ANY(%(secrets)s)
