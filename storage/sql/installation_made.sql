-- The installation gets its id once; whoever comes second keeps the first one's.
INSERT INTO installation (id) VALUES (%(id)s) ON CONFLICT (only_one) DO NOTHING
