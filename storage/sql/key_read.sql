-- What became of a key that could not be taken; nothing once it was let go again.
SELECT record_id, payload_sha256, answer FROM submission_keys
WHERE account_id = %(account_id)s AND key = %(idempotency_key)s
