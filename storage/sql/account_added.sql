-- A new account; nothing when the name is taken.
INSERT INTO accounts (id, name) VALUES (%(id)s, %(name)s)
ON CONFLICT (name) DO NOTHING
RETURNING id, name, created_at, disabled_at
