-- A person deletes a record: invisible and fenced at once; bytes and rows are purged later. What was being
-- tried just then says nothing of the record, so that claim is taken off the count.
WITH deleted AS (
    UPDATE records
    SET deleted_at = clock_timestamp(), wake_at = NULL,
        failures = failures - (claim_token IS NOT NULL)::integer,
        claim_token = NULL, claimed_by = NULL, claimed_at = NULL, lease_seconds = NULL, lease_until = NULL
    WHERE id = %(id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s) AND deleted_at IS NULL
    RETURNING id, milestone
), noted AS (
    INSERT INTO events (record_id, kind, milestone, by) SELECT id, 'deleted', milestone, %(by)s FROM deleted
)
SELECT id FROM deleted
