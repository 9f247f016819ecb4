-- Records whose days after their deletion are over go for good; their bytes are to go from their store.
WITH over AS (
    SELECT id FROM records
    WHERE deleted_at < clock_timestamp() - make_interval(secs => %(kept_seconds)s)
    ORDER BY deleted_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), purged AS (
    DELETE FROM records USING over WHERE records.id = over.id
    RETURNING records.id, records.store_id, records.milestone, records.stop_code, records.owner_id
), asked AS (
    INSERT INTO removals (record_id, store_id) SELECT id, store_id FROM purged
    ON CONFLICT (record_id) DO NOTHING
)
SELECT purged.id, accounts.name, purged.milestone, purged.stop_code
FROM purged JOIN accounts ON accounts.id = purged.owner_id
