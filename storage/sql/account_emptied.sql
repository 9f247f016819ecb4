-- Every record of an account goes for good; its bytes are to go from their store.
WITH gone AS (
    DELETE FROM records WHERE owner_id = %(account_id)s RETURNING id, store_id
)
INSERT INTO removals (record_id, store_id) SELECT id, store_id FROM gone
ON CONFLICT (record_id) DO NOTHING
