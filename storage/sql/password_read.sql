-- What a password is held against.
SELECT id, name, created_at, disabled_at, is_service_owner, password_hash FROM accounts WHERE name = %(name)s
