-- The account of that name.
SELECT id, name, created_at, disabled_at, is_service_owner FROM accounts WHERE name = %(name)s
