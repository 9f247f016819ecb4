-- A new account; nothing when the name is taken.
INSERT INTO accounts (id, name, is_service_owner) VALUES (%(id)s, %(name)s, %(is_service_owner)s)
ON CONFLICT (name) DO NOTHING
RETURNING id, name, created_at, disabled_at, is_service_owner
