-- Take a key for one submission: nobody has it, its holder's lease is over, or its days are.
INSERT INTO submission_keys (account_id, key, holder, lease_until)
VALUES (
    %(account_id)s, %(idempotency_key)s, %(holder)s, clock_timestamp() + make_interval(secs => %(lease_seconds)s)
)
ON CONFLICT (account_id, key) DO UPDATE
SET holder = excluded.holder, taken_at = clock_timestamp(), lease_until = excluded.lease_until,
    record_id = NULL, payload_sha256 = NULL, answer = NULL
WHERE submission_keys.lease_until < clock_timestamp()
  AND (submission_keys.record_id IS NULL
       OR submission_keys.taken_at < clock_timestamp() - make_interval(secs => %(kept_seconds)s))
RETURNING holder
