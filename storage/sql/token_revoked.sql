-- A revoked token keeps the moment it was first revoked.
UPDATE tokens SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE id = %(id)s
RETURNING id, account_id, name, created_at, last_used_at, expires_at, revoked_at
