-- Somebody has signed in, if the account is still open.
INSERT INTO sessions (secret_sha256, account_id, until)
SELECT %(secret_sha256)s, id, clock_timestamp() + make_interval(secs => %(idle_seconds)s)
FROM accounts WHERE id = %(account_id)s AND disabled_at IS NULL
RETURNING until
