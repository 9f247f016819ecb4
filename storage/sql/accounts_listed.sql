-- Every account, by name.
SELECT id, name, created_at, disabled_at FROM accounts ORDER BY name
