-- A submission came to nothing: its key is free at once.
DELETE FROM submission_keys
WHERE account_id = %(account_id)s AND key = %(idempotency_key)s AND holder = %(holder)s AND record_id IS NULL
