-- A person takes a deletion back before the purge: the record goes on where it was.
WITH undeleted AS (
    UPDATE records
    SET deleted_at = NULL
    WHERE id = %(id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s) AND deleted_at IS NOT NULL
    RETURNING id, milestone, lane, created_at
), noted AS (
    INSERT INTO events (record_id, kind, milestone, by) SELECT id, 'undeleted', milestone, %(by)s FROM undeleted
)
SELECT id, CASE
    WHEN lane IS NOT NULL THEN pg_notify('rubezh_ready', lane || ' ' || extract(epoch FROM created_at))
END FROM undeleted
