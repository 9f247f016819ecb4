-- The unfinished uploads of an account go with it.
WITH gone AS (
    DELETE FROM uploads WHERE account_id = %(account_id)s RETURNING id, store_id, finished_at
)
INSERT INTO removals (record_id, store_id) SELECT id, store_id FROM gone WHERE finished_at IS NULL
ON CONFLICT (record_id) DO NOTHING
