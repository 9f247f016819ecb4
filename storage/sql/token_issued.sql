-- A new token, of whose secret only the hash is kept.
INSERT INTO tokens (id, account_id, name, secret_sha256, expires_at)
VALUES (%(id)s, %(account_id)s, %(name)s, %(secret_sha256)s, %(expires_at)s)
RETURNING id, account_id, name, created_at, last_used_at, expires_at, revoked_at
