-- The tokens of an account, the oldest first.
SELECT id, account_id, name, created_at, last_used_at, expires_at, revoked_at FROM tokens
WHERE account_id = %(account_id)s
ORDER BY created_at, id
