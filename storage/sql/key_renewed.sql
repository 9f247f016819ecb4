-- A submission is still being received: its key is held on.
UPDATE submission_keys SET lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
WHERE account_id = %(account_id)s AND key = %(idempotency_key)s AND holder = %(holder)s AND record_id IS NULL
