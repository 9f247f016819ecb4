-- Make an account the service owner's, or one like the others.
UPDATE accounts SET is_service_owner = %(is_service_owner)s WHERE id = %(id)s
RETURNING id, name, created_at, disabled_at, is_service_owner
