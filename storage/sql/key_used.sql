-- A key becomes its record's, in the transaction that makes the record; nothing when another has taken it.
UPDATE submission_keys SET record_id = %(record_id)s, payload_sha256 = %(payload_sha256)s
WHERE account_id = %(account_id)s AND key = %(idempotency_key)s AND holder = %(holder)s
  AND (record_id IS NULL OR record_id = %(record_id)s)
RETURNING record_id
