-- The account of that name.
SELECT id, name, created_at, disabled_at FROM accounts WHERE name = %(name)s
