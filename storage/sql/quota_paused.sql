-- A service has asked for a pause; the longest of those it has asked for holds.
INSERT INTO quotas (name, paused_until)
VALUES (%(name)s, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (name) DO UPDATE SET paused_until = greatest(quotas.paused_until, excluded.paused_until)
