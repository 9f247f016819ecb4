-- Every account, by name.
SELECT id, name, created_at, disabled_at, is_service_owner FROM accounts ORDER BY name
