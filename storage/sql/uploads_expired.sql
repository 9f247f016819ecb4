-- Let go of the uploads of a store whose lease is over, and of the bytes of those that never became records.
WITH gone AS (
    DELETE FROM uploads WHERE store_id = %(store_id)s AND expires_at <= clock_timestamp()
    RETURNING id, store_id, finished_at
), asked AS (
    INSERT INTO removals (record_id, store_id) SELECT id, store_id FROM gone WHERE finished_at IS NULL
    ON CONFLICT (record_id) DO NOTHING
)
SELECT id FROM gone WHERE finished_at IS NULL
