-- Keep the first answer given under a key, and return whichever was the first.
UPDATE submission_keys SET answer = coalesce(answer, %(answer)s)
WHERE account_id = %(account_id)s AND key = %(idempotency_key)s AND record_id = %(record_id)s
RETURNING answer
