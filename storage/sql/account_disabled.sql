-- Close or open an account; a closed one keeps the moment it was first closed.
UPDATE accounts
SET disabled_at = CASE WHEN %(disabled)s THEN coalesce(disabled_at, clock_timestamp()) END
WHERE id = %(id)s
RETURNING id, name, created_at, disabled_at, is_service_owner
